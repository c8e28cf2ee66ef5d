// SPDX-License-Identifier: LGPL-2.1-or-later
// How often the kernel was told of each inode and has not forgotten it again. Bounded by what the kernel holds.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "lccfs/types.h"

namespace lccfs::fuse {

/// Any thread.
class LookupCounts {
 public:
  /// Before the answer that names the inode: the kernel may forget it before the answering call returns.
  void add(Ino ino);
  /// Answers whether the kernel knows nothing of the inode any more.
  bool drop(Ino ino, std::uint64_t count);

 private:
  std::mutex mutex_;
  std::unordered_map<Ino, std::uint64_t> counts_;
};

}  // namespace lccfs::fuse
