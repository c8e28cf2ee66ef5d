// SPDX-License-Identifier: LGPL-2.1-or-later
// A file that is locked for as long as this process serves a mount, and then says whether all of it is stored:
// umount(2) returns before that, umount.lccfs waits for it. A lock is there exactly as long as its process, however
// that ends; a process id in the mount table or a file would not tell whose it is by now.
#pragma once

#include <string>

#include "base/descriptor.h"
#include "lccfs/clock.h"
#include "lccfs/result.h"

namespace lccfs::fuse {

/// One thread.
class MountLock {
 public:
  /// Makes the file of the mount whose device is "major:minor", with this process's id. The number is free again as
  /// soon as the mount is gone, before its process is: what an earlier one has there is replaced, not changed.
  /// `folder`: metrics::run_folder().
  static Result<MountLock> take(const std::string& folder, const std::string& device);
  /// There is such a file of that mount, and its process is gone.
  static bool is_free(const std::string& folder, const std::string& device);

  /// Everything is in the store.
  void stored();

 private:
  explicit MountLock(int fd) : file_(fd) {}
  Descriptor file_;
};

/// Held while a mount is made, by processes with the same folder: of two at one place, the second one sees the first.
/// Waits for ten seconds at most, and goes on without it then, and where the folder cannot be used.
Descriptor lock_mounting(const std::string& folder, Clock& clock);

}  // namespace lccfs::fuse
