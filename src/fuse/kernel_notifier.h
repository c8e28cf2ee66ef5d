// SPDX-License-Identifier: LGPL-2.1-or-later
// Tells the kernel what it holds that is no longer right. Any thread; the file system's promises about which threads
// call it are in lccfs/file_system.h.
#pragma once

#include <atomic>

#include "fuse/fuse_api.h"
#include "fuse/kernel_channel.h"
#include "lccfs/file_system.h"

namespace lccfs::fuse {

class KernelNotifier : public KernelCache {
 public:
  /// `root`: the inode that the kernel knows as FUSE_ROOT_ID.
  /// `handshake`: of the session.
  KernelNotifier(fuse_session* session, const Handshake& handshake, Ino root)
      : session_(session), handshake_(handshake), root_(root) {}

  void invalidate_attributes(Ino ino) override;
  void invalidate_pages(Ino ino) override;
  void invalidate_page_range(Ino ino, std::uint64_t offset_bytes, std::uint64_t size_bytes) override;
  bool can_forget_names() const override;
  void forget_names() override;
  /// To forget names, the kernel drops directories, and unmounts what is mounted there. Answers whether that is new.
  bool set_mounts_below(bool are_some) { return !has_mounts_below_.exchange(are_some) && are_some; }

 private:
  void invalidate(Ino ino, off_t offset_bytes, off_t size_bytes);

  fuse_session* const session_;  // mounted for as long as anybody calls: Session::close
  const Handshake& handshake_;
  std::atomic<bool> has_mounts_below_ = false;
  const Ino root_;
};

}  // namespace lccfs::fuse
