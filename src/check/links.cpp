// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/links.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <string>

#include "format/object_names.h"

namespace lccfs::check {

using Kind = Finding::Kind;

void UnlessDetached::add(const QueueIndex& queue, Ino ino, bool sealed, Finding finding) {
  if (!queue.leads_to(ino, sealed)) findings_[ino].push_back(std::move(finding));
}

Result<> UnlessDetached::report(const NamespaceCheck& check) {
  for (const auto& [directory, record] : check.index.directories) {
    if (findings_.empty()) break;
    if (!record.has_detached || !check.facts.queue.names_directory(directory)) continue;
    LCCFS_CHECK(check.directories.for_each_detached(directory, [&](const std::vector<Ino>& detached) -> Result<> {
      for (const Ino ino : detached) findings_.erase(ino);
      return {};
    }));
  }
  for (auto& [ino, findings] : findings_) check.sink.report(std::move(findings));
  return {};
}

namespace {

/// Of a directory with a further name that name is the finding (check_several_names).
void judge_links(const NamespaceCheck& check, Ino ino, const InodeSummary& inode, std::uint64_t names,
                 UnlessDetached& findings) {
  if (ino == root_ino || !inode.type || (names != 0 && names == inode.nlink)) return;
  if (names > 1 && inode.is_directory()) return;
  findings.add(check.facts.queue, ino, inode.is_sealed(),
               {.kind = names == 0 ? Kind::orphan : Kind::wrong_links,
                .object = format::inode_object(ino),
                .text = std::to_string(names) + " entries, nlink " + std::to_string(inode.nlink),
                .number = names});
}

Result<std::uint64_t> count_all_names(const NamespaceCheck& check, Ino ino, const std::set<Ino>& directories) {
  std::uint64_t names = 0;
  for (const Ino directory : directories) {
    LCCFS_TRY(const auto counts, check.directories.count_names(directory, {&ino, 1}));
    names += counts.front();
  }
  return names;
}

}  // namespace

Result<> check_links(const NamespaceCheck& check, const UnclearInodes& unclear, UnlessDetached& findings) {
  for (const auto& [ino, special] : check.index.specials) {
    judge_links(check, ino, special.summary, special.names, findings);
    if (!special.summary.is_sealed()) continue;
    findings.add(
        check.facts.queue, ino, true,
        {.kind = Kind::lost_trace, .object = format::inode_object(ino), .text = "is sealed, and no item leads there"});
  }
  const std::vector<std::pair<Ino, std::set<Ino>>> to_count(unclear.begin(), unclear.end());
  std::mutex mutex;
  return for_each_number(check.store, check.effort, to_count.size(), [&](ReadWindow&, std::size_t i) -> Result<> {
    auto [ino, directories] = to_count[i];
    if (check.facts.queue.leads_to(ino)) return {};
    LCCFS_TRY(const auto inode, read_summary(check.store, ino));
    if (!inode) return {};
    directories.insert(inode->parents.begin(), inode->parents.end());
    LCCFS_TRY(const auto names, count_all_names(check, ino, directories));
    const std::lock_guard lock(mutex);
    judge_links(check, ino, *inode, names, findings);
    return {};
  });
}

}  // namespace lccfs::check
