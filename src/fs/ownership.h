// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What only an owner may do. The kernel checks that, by what it was told last, and for a descriptor it asks for nothing
// anew: one that was opened by an owner whom another client has replaced since stays an owner's for the kernel. So the
// edit that an operation makes is checked here, as often as it is made, against the inode as it is (docs/POSIX.md).
#pragma once

#include "format/records.h"
#include "lccfs/file_system.h"

namespace lccfs {

/// not_permitted: the caller neither owns it nor may act for owners (CAP_FOWNER, or CAP_CHOWN).
Result<> check_is_owner(const Caller& caller, Ino ino, const format::AttrRecord& attr);
/// Its mode without setgid, where the group is none of the caller's, who may not pass over that (CAP_FSETID).
std::uint32_t mode_allowed(const Caller& caller, const format::AttrRecord& attr);

}  // namespace lccfs
