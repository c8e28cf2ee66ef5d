// SPDX-License-Identifier: LGPL-2.1-or-later
// What a process may do beyond its uid and gid, as /proc has it now. Of one that is gone, or that we do not see: nothing.
// Any thread.
#pragma once

#include <sys/types.h>

namespace lccfs {

/// CAP_FOWNER, or CAP_CHOWN.
bool may_act_for_owners(pid_t process);
/// As a supplementary group.
bool is_member_of(pid_t process, gid_t group);

}  // namespace lccfs
