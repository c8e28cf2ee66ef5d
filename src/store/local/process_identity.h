// SPDX-License-Identifier: LGPL-2.1-or-later
// What names a client to others: its id, unique for ever, and the process it lives in. Two processes never share pid
// and start time within one boot; the lock on the client's file tells that this boot is the one that is meant.
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
  std::uint64_t start_ticks = 0;  ///< since boot, from /proc/PID/stat
  bool operator==(const ClientIdentity&) const = default;
};

/// A new client of this process.
Result<ClientIdentity> make_identity();
Bytes encode(const ClientIdentity& identity);
/// invalid: not what encode makes.
Result<ClientIdentity> decode_identity(const Bytes& bytes);

/// SIGKILL, never to another process that has got the same pid, and only to one that holds a lock on this file: what is
/// stored somewhere proves nothing. false: there is no such process. permission_denied: that one does not hold it, or
/// nobody lets us look.
Result<bool> kill_process(const ClientIdentity& identity, int locked_file);

}  // namespace lccfs::local
