// SPDX-License-Identifier: LGPL-2.1-or-later
// Directories that inodes point to which were made here and may have no name yet. A collector asks before it removes a
// directory: one of these stays (docs/ORDERING.md section 5). Any thread; never blocks.
#pragma once

#include <mutex>
#include <set>

#include "lccfs/types.h"

namespace lccfs {

class ParentsOfNew {
 public:
  /// Around a make. What memory holds of the directory is looked at within it, or a collector may have been told
  /// meanwhile that nobody here needs it.
  class Making {
   public:
    Making(ParentsOfNew& parents, Ino directory) : parents_(parents) {
      const std::lock_guard lock(parents_.mutex_);
      place_ = parents_.making_.insert(directory);
    }
    ~Making() {
      const std::lock_guard lock(parents_.mutex_);
      parents_.making_.erase(place_);
    }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;

   private:
    ParentsOfNew& parents_;
    std::multiset<Ino>::const_iterator place_;
  };

  /// Of an inode whose name is in doubt: nobody here hears when the collector has seen to it, so to the end.
  void keep(Ino directory) {
    const std::lock_guard lock(mutex_);
    kept_.insert(directory);
  }
  bool contains(Ino directory) const {
    const std::lock_guard lock(mutex_);
    return making_.contains(directory) || kept_.contains(directory);
  }

 private:
  mutable std::mutex mutex_;
  std::multiset<Ino> making_;
  std::set<Ino> kept_;
};

}  // namespace lccfs
