// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/lookup_counts.h"

namespace lccfs::fuse {

void LookupCounts::add(Ino ino) {
  const std::lock_guard lock(mutex_);
  ++counts_[ino];
}

bool LookupCounts::drop(Ino ino, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(ino);
  if (found == counts_.end()) return false;  // the root is known without a lookup, and never forgotten
  if (found->second > count) {
    found->second -= count;
    return false;
  }
  counts_.erase(found);
  return true;
}

}  // namespace lccfs::fuse
