// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/links.h"

#include <set>
#include <string>

namespace lccfs::check {

namespace {

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
    LCCFS_CHECK(findings.add_links(ino, special.summary, special.names));
    if (special.summary.is_sealed()) LCCFS_CHECK(findings.add_seal(ino));
  }
  const std::vector<std::pair<Ino, std::set<Ino>>> to_count(unclear.begin(), unclear.end());
  return for_each_number(check.store, check.effort, to_count.size(), [&](ReadWindow&, std::size_t i) -> Result<> {
    auto [ino, directories] = to_count[i];
    if (check.facts.queue.leads_to(ino)) return {};
    LCCFS_TRY(const auto inode, read_summary(check.store, ino));
    if (!inode) return {};
    directories.insert(inode->parents.begin(), inode->parents.end());
    LCCFS_TRY(const auto names, count_all_names(check, ino, directories));
    return findings.add_links(ino, *inode, names);
  });
}

}  // namespace lccfs::check
