// SPDX-License-Identifier: LGPL-2.1-or-later
// Tells the kernel what it holds that is no longer right. Any thread; the file system's promises about which threads
// call it are in lccfs/file_system.h.
#pragma once

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
  void raise_size(Ino ino, std::uint64_t size_bytes, char last_byte) override;
  bool can_keep_names() const override;
  void expire_name(Ino directory, const std::string& name) override;
  void forget_names() override;

 private:
  void invalidate(Ino ino, off_t offset_bytes, off_t size_bytes);
  /// Whether the kernel holds nothing of it now.
  static bool note(Ino ino, int result);

  fuse_ino_t number_of(Ino ino) const { return ino == root_ ? FUSE_ROOT_ID : ino.value; }

  fuse_session* const session_;  // mounted for as long as anybody calls: Session::close
  const Handshake& handshake_;
  const Ino root_;
};

}  // namespace lccfs::fuse
