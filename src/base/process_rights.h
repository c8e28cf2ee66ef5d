// SPDX-License-Identifier: LGPL-2.1-or-later
// What a process may do beyond its uid and gid, as /proc has it now. Of one that is gone, or in a PID namespace that we do
// not see: nothing. Any thread.
#pragma once

#include <sys/types.h>

#include <optional>

namespace lccfs {

/// Whether it has the capability (CAP_FOWNER and so on) for what that user and that group own. As the kernel has it: the
/// process is in our user namespace, or both are mapped into its own. (Anybody has all capabilities in one that he makes.)
bool is_capable(pid_t process, unsigned capability, uid_t user, gid_t group);
/// Whether it has the capability for what belongs to nobody's namespace, as trusted.* attributes: it is in our user
/// namespace, which is the host's. nullopt: /proc does not show it to us.
std::optional<bool> is_capable_here(pid_t process, unsigned capability);
/// As a supplementary group.
bool is_member_of(pid_t process, gid_t group);

}  // namespace lccfs
