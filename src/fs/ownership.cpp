// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/ownership.h"

#include <linux/capability.h>

#include "base/process_rights.h"
#include "format/object_names.h"
#include "fs/mode_bits.h"

namespace lccfs {

Result<> check_is_owner(const Caller& caller, Ino ino, const format::AttrRecord& attr) {
  const auto is_able = [&](unsigned capability) { return is_capable(caller.pid, capability, attr.uid, attr.gid); };
  if (caller.uid == 0 || caller.uid == attr.uid || is_able(CAP_FOWNER) || is_able(CAP_CHOWN)) return {};
  return failure(ErrorCode::not_permitted, format::inode_object(ino) + " has another owner now");
}

std::uint32_t mode_allowed(const Caller& caller, const format::AttrRecord& attr) {
  if ((attr.mode & setgid_bit) == 0 || attr.type == FileType::directory) return attr.mode;
  const bool may_keep = caller.uid == 0 || caller.gid == attr.gid || is_member_of(caller.pid, attr.gid) ||
                        is_capable(caller.pid, CAP_FSETID, attr.uid, attr.gid);
  return may_keep ? attr.mode : attr.mode & ~setgid_bit;
}

}  // namespace lccfs
