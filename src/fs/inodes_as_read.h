// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Inodes of files as the store had them, each at the version that was read: while a read shows the same version, the rest
// need not be read again. An answer never rests on these alone. Any thread; never blocks.
#pragma once

#include <memory>

#include "base/mutex.h"
#include "fs/metadata_cache.h"

namespace lccfs {

class InodesAsRead {
 public:
  explicit InodesAsRead(Clock& clock) : clock_(clock) {}

  /// All of it, as one read showed it. What is likely to change soon, or is large, is not kept.
  void put(const Inode& read) EXCLUDES(mutex_);
  void drop(Ino ino) EXCLUDES(mutex_);
  /// nullptr: not in memory.
  std::shared_ptr<const Inode> get(Ino ino) EXCLUDES(mutex_);

 private:
  /// About 1 KiB each.
  static constexpr std::size_t limit = 32'768;
  static constexpr std::chrono::hours kept_for{1};

  Clock& clock_;
  Mutex mutex_;
  ExpiringMap<Ino, std::shared_ptr<const Inode>> inodes_ GUARDED_BY(mutex_){limit};
};

}  // namespace lccfs
