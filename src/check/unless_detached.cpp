// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/unless_detached.h"

#include <algorithm>
#include <string>

#include "format/object_names.h"

namespace lccfs::check {

using Kind = Finding::Kind;

Result<> UnlessDetached::add_links(Ino ino, const InodeSummary& inode, std::uint64_t names) {
  if (ino == root_ino || !inode.type || (names != 0 && names == inode.nlink)) return {};
  // Of a directory with a further name that name is the finding (check_several_names).
  if (names > 1 && inode.is_directory()) return {};
  if (names == 0) return add_orphan(ino, inode.nlink, inode.is_sealed());
  return add({.ino = ino, .kind = Kind::wrong_links, .nlink = inode.nlink, .names = names}, inode.is_sealed());
}

Result<> UnlessDetached::add(const Doubt& doubt, bool sealed) {
  if (check_.facts.queue.leads_to(doubt.ino, sealed)) return {};
  const std::lock_guard lock(mutex_);
  doubts_.push_back(doubt);
  return doubts_.size() < room_ ? Result<>() : settle();
}

Result<> UnlessDetached::finish() {
  const std::lock_guard lock(mutex_);
  return settle();
}

std::size_t UnlessDetached::held() const {
  const std::lock_guard lock(mutex_);
  return doubts_.size();
}

/// With the mutex held.
Result<> UnlessDetached::settle() {
  if (doubts_.empty()) return {};
  std::ranges::sort(doubts_);
  std::vector<bool> explained(doubts_.size());
  const auto explain = [&](const std::vector<Ino>& detached) -> Result<> {
    for (const Ino ino : detached) {
      for (const auto& doubt : std::ranges::equal_range(doubts_, ino, {}, &Doubt::ino)) {
        explained[static_cast<std::size_t>(&doubt - doubts_.data())] = true;
      }
    }
    return {};
  };
  for (const auto& [directory, record] : check_.index.directories) {
    if (!record.has_detached || !check_.facts.queue.names_directory(directory)) continue;
    LCCFS_CHECK(check_.directories.for_each_detached(directory, explain));
  }
  for (std::size_t i = 0; i < doubts_.size(); ++i) {
    if (!explained[i]) check_.sink.report(finding_of(doubts_[i]));
  }
  doubts_.clear();
  return {};
}

Finding UnlessDetached::finding_of(const Doubt& doubt) {
  Finding finding{.kind = doubt.kind, .object = format::inode_object(doubt.ino), .text = {}, .number = doubt.names};
  if (doubt.kind == Kind::lost_trace) {
    finding.text = "is sealed, and no item leads there";
  } else if (doubt.kind == Kind::unreachable) {
    finding.text = "it has content, and no path from the root";
  } else {
    finding.text = std::to_string(doubt.names) + " entries, nlink " + std::to_string(doubt.nlink);
  }
  return finding;
}

}  // namespace lccfs::check
