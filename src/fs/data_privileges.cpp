// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Privileges that a write, or a truncate at open, clears. The kernel leaves this to the file system
// (FUSE_HANDLE_KILLPRIV_V2).
//
//  # | object  | step                                                                     | stop here leaves
//  - | Inode.X | [change attr] before the data: guard `attr` as known; clear setuid,      | the same bytes, without the
//    |         | setgid, and the capability's flag and key; ctime                         | privileges
#include "fs/data_io.h"
#include "fs/mode_bits.h"

namespace lccfs {

namespace {

/// Root's writes leave the mode alone.
format::AttrRecord cleared(format::AttrRecord attr, const Caller& caller) {
  if (caller.uid != 0) attr.mode = without_privileges(attr.mode);
  attr.flags &= ~format::attr_flag::capability;
  return attr;
}

}  // namespace

bool DataIo::knows_privileges(const FileNode& node, const Caller& caller) const {
  return caller.uid == 0 || instance.clock().elapsed() - node.attr_sent <= attributes_ttl;
}

bool DataIo::has_no_privileges(const FileNode& node, const Caller& caller) const {
  const auto& attr = node.view.attr;
  return knows_privileges(node, caller) && cleared(attr, caller) == attr;
}

Result<> DataIo::clear_privileges(FileNode& node, const Caller& caller) {
  std::optional<Inode> view;
  {
    const Lock lock(node.mutex);
    if (has_no_privileges(node, caller)) return {};
    if (knows_privileges(node, caller)) view = node.view;
  }
  if (!view) {
    LCCFS_TRY(view, read_inode(instance, node.ino));
    node.learn(*view);
    if (cleared(view->attr, caller) == view->attr) return {};
  }
  const auto clear = [&caller](format::AttrRecord& attr) -> Result<> {
    attr = cleared(attr, caller);
    return {};
  };
  LCCFS_TRY(const auto changed, change_attr(instance, node.ino, clear, &*view));
  {
    const Lock lock(node.mutex);
    node.learn_attr(changed);
  }
  kernel.drop_attributes(node.ino);
  return {};
}

}  // namespace lccfs
