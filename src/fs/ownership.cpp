// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/ownership.h"

#include "base/process_rights.h"
#include "format/object_names.h"
#include "fs/mode_bits.h"

namespace lccfs {

Result<> check_is_owner(const Caller& caller, Ino ino, const format::AttrRecord& attr) {
  if (caller.uid == 0 || caller.uid == attr.uid || may_act_for_owners(caller.pid)) return {};
  return failure(ErrorCode::not_permitted, format::inode_object(ino) + " has another owner now");
}

std::uint32_t mode_allowed(const Caller& caller, std::uint32_t mode, FileType type, std::uint32_t gid) {
  if ((mode & setgid_bit) == 0 || type == FileType::directory || caller.uid == 0 || caller.gid == gid) return mode;
  return is_member_of(caller.pid, gid) ? mode : mode & ~setgid_bit;
}

}  // namespace lccfs
