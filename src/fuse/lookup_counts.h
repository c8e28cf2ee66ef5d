// SPDX-License-Identifier: LGPL-2.1-or-later
// How often the kernel was told of each inode and has not forgotten it again, and below which directory on top of the
// volume it was at the last time. Bounded by what the kernel holds.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/mutex.h"
#include "lccfs/types.h"
#include "metrics/directories.h"

namespace lccfs::fuse {

/// Any thread.
class LookupCounts {
 public:
  /// Before the answer that names the inode: the kernel may forget it before the answering call returns.
  void add(Ino ino, metrics::DirectoryTag directory) {
    const Lock lock(mutex_);
    Known& known = known_[ino];
    ++known.count;
    known.directory = directory.value;
  }
  /// `is_forgotten` is called if the kernel knows nothing of the inode any more; nobody is told of it meanwhile. It does
  /// not block.
  template <class Forgotten>
  void drop(Ino ino, std::uint64_t count, Forgotten is_forgotten) {
    const Lock lock(mutex_);
    const auto found = known_.find(ino);
    if (found == known_.end()) return;  // the root is known without a lookup, and never forgotten
    const std::uint64_t had = found->second.count;
    if (had > count) return static_cast<void>(found->second.count = had - count);
    is_forgotten();
    known_.erase(found);
  }
  bool has(Ino ino) const {
    const Lock lock(mutex_);
    return known_.contains(ino);
  }
  metrics::DirectoryTag directory_of(Ino ino) const {
    const Lock lock(mutex_);
    const auto found = known_.find(ino);
    if (found == known_.end()) return metrics::other_directories;
    return {static_cast<std::uint16_t>(found->second.directory)};
  }

 private:
  struct Known {
    std::uint64_t count : 48 = 0, directory : 16 = 0;
  };
  mutable Mutex mutex_;
  std::unordered_map<Ino, Known> known_ GUARDED_BY(mutex_);
};

}  // namespace lccfs::fuse
