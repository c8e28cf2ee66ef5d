// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/kernel_notifier.h"

#include <cerrno>
#include <string>

#include "base/log.h"

namespace lccfs::fuse {

// What the kernel makes of the offset: negative, attributes alone; otherwise the pages after it, too, so many bytes of
// them, 0 for all.
void KernelNotifier::invalidate_attributes(Ino ino) { invalidate(ino, -1, 0); }
void KernelNotifier::invalidate_pages(Ino ino) { invalidate(ino, 0, 0); }
void KernelNotifier::invalidate_page_range(Ino ino, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  if (size_bytes != 0) invalidate(ino, static_cast<off_t>(offset_bytes), static_cast<off_t>(size_bytes));
}

void KernelNotifier::invalidate(Ino ino, off_t offset_bytes, off_t size_bytes) {
  const fuse_ino_t number = ino == root_ ? FUSE_ROOT_ID : ino.value;
  const int result = fuse_lowlevel_notify_inval_inode(session_, number, offset_bytes, size_bytes);
  // ENOENT: it holds nothing of this inode. The others: the mount is ending, with all that the kernel held.
  if (result == 0 || result == -ENOENT || result == -ENODEV || result == -ENOTCONN) return;
  log::warning("inode " + std::to_string(ino.value) + ": the kernel did not drop what it holds, error " +
               std::to_string(-result));
}

}  // namespace lccfs::fuse
