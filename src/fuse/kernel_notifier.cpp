// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/kernel_notifier.h"

#include <linux/fuse.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/blocking.h"
#include "base/log.h"

namespace lccfs::fuse {

namespace {
// FUSE_NOTIFY_INC_EPOCH, since Linux 6.16: each dentry has the epoch of its request, and none of an older one is valid.
// libfuse 3.14 does not know it.
constexpr unsigned first_minor_with_epochs = 44;
constexpr std::int32_t notify_inc_epoch = 8;
}  // namespace

// What the kernel makes of the offset: negative, attributes alone; otherwise the pages after it, too, so many bytes of
// them, 0 for all.
void KernelNotifier::invalidate_attributes(Ino ino) { invalidate(ino, -1, 0); }
void KernelNotifier::invalidate_pages(Ino ino) { invalidate(ino, 0, 0); }
void KernelNotifier::invalidate_page_range(Ino ino, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  if (size_bytes != 0) invalidate(ino, static_cast<off_t>(offset_bytes), static_cast<off_t>(size_bytes));
}

/// There is no notification of a size. One that stores bytes past it raises it.
void KernelNotifier::raise_size(Ino ino, std::uint64_t size_bytes, char last_byte) {
  if (size_bytes == 0) return;
  fuse_bufvec byte = FUSE_BUFVEC_INIT(1);
  byte.buf[0].mem = &last_byte;
  about_to_block();
  note(ino, fuse_lowlevel_notify_store(session_, number_of(ino), static_cast<off_t>(size_bytes - 1), &byte, {}));
}

bool KernelNotifier::can_keep_names() const { return handshake_.minor >= first_minor_with_epochs; }

void KernelNotifier::expire_name(Ino directory, const std::string& name) {
  about_to_block();
  const int result =
      fuse_lowlevel_notify_expire_entry(session_, number_of(directory), name.c_str(), name.size(), FUSE_LL_EXPIRE_ONLY);
  if (!note(directory, result)) forget_names();
}

void KernelNotifier::forget_names() {
  const fuse_out_header notification = {.len = sizeof notification, .error = notify_inc_epoch, .unique = 0};
  const bool is_told = ::write(fuse_session_fd(session_), &notification, sizeof notification) == sizeof notification;
  if (is_told || errno == ENODEV || errno == ENOTCONN) return;
  log::error("the kernel keeps names that may be wrong, error " + std::to_string(errno));
}

void KernelNotifier::invalidate(Ino ino, off_t offset_bytes, off_t size_bytes) {
  about_to_block();
  note(ino, fuse_lowlevel_notify_inval_inode(session_, number_of(ino), offset_bytes, size_bytes));
}

bool KernelNotifier::note(Ino ino, int result) {
  // ENOENT: it holds nothing of this inode. The others: the mount is ending, with all that the kernel held.
  if (result == 0 || result == -ENOENT || result == -ENODEV || result == -ENOTCONN) return true;
  log::warning("inode " + std::to_string(ino.value) + ": the kernel did not drop what it holds, error " +
               std::to_string(-result));
  return false;
}

}  // namespace lccfs::fuse
