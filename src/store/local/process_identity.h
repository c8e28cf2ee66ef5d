// SPDX-License-Identifier: LGPL-2.1-or-later
// What names a client to others: its id, unique for ever, and the process it lives in.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "lccfs/result.h"
#include "lccfs/types.h"

namespace lccfs::local {

struct ClientIdentity {
  std::string id;  ///< 32 hex digits, random
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< since boot, from /proc/PID/stat; older programs want it
};

/// A new client of this process.
Result<ClientIdentity> make_identity();
Bytes encode(const ClientIdentity& identity);
/// invalid: not what encode makes.
Result<ClientIdentity> decode_identity(const Bytes& bytes);

/// SIGKILL, but only to a process that holds the lock on this file: what is stored somewhere proves nothing, and another
/// process may have got the same pid. false: it does not, or there is no such process. permission_denied: nobody lets us
/// look.
Result<bool> kill_holder(pid_t pid, int locked_file);

}  // namespace lccfs::local
