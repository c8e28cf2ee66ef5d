// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/kernel_notifier.h"

#include <cerrno>
#include <mutex>
#include <string>

#include "base/log.h"

namespace lccfs::fuse {

// What the kernel makes of the offset: negative, attributes alone; otherwise the pages behind it, too.
void KernelNotifier::invalidate_attributes(Ino ino) { invalidate(ino, -1); }
void KernelNotifier::invalidate_pages(Ino ino) { invalidate(ino, 0); }

void KernelNotifier::invalidate(Ino ino, off_t offset_bytes) {
  const std::shared_lock lock(mutex_);
  if (session_ == nullptr) return;
  const int result = fuse_lowlevel_notify_inval_inode(session_, ino.value, offset_bytes, 0);
  // ENOENT: it holds nothing of this inode. The others: the mount is ending, with all that the kernel held.
  if (result == 0 || result == -ENOENT || result == -ENODEV || result == -ENOTCONN) return;
  log::warning("inode " + std::to_string(ino.value) + ": the kernel did not drop what it holds, error " +
               std::to_string(-result));
}

void KernelNotifier::close() {
  const std::unique_lock lock(mutex_);
  session_ = nullptr;
}

}  // namespace lccfs::fuse
