// SPDX-License-Identifier: LGPL-2.1-or-later
// How often the kernel was told of each inode and has not forgotten it again. Bounded by what the kernel holds.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/mutex.h"
#include "lccfs/types.h"

namespace lccfs::fuse {

/// Any thread.
class LookupCounts {
 public:
  /// Before the answer that names the inode: the kernel may forget it before the answering call returns.
  void add(Ino ino) {
    const Lock lock(mutex_);
    ++counts_[ino];
  }
  /// Answers whether the kernel knows nothing of the inode any more.
  bool drop(Ino ino, std::uint64_t count) {
    const Lock lock(mutex_);
    const auto found = counts_.find(ino);
    if (found == counts_.end()) return false;  // the root is known without a lookup, and never forgotten
    found->second -= std::min(count, found->second);
    if (found->second != 0) return false;
    counts_.erase(found);
    return true;
  }

 private:
  Mutex mutex_;
  std::unordered_map<Ino, std::uint64_t> counts_ GUARDED_BY(mutex_);
};

}  // namespace lccfs::fuse
