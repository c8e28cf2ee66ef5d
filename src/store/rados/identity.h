// SPDX-License-Identifier: LGPL-2.1-or-later
// Who a RADOS client is, and how it is barred.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lccfs/result.h"
#include "lccfs/types.h"
#include "store/rados/connection.h"

namespace lccfs::rados {

struct Identity {
  std::uint64_t instance_id = 0;       ///< RADOS's global id, what a watcher is listed under
  std::vector<std::string> addresses;  ///< with nonce, as the monitors write them
};

Identity identity_of(librados::Rados& cluster);
Bytes encode_identity(const Identity& identity);
Result<Identity> parse_identity(const Bytes& bytes);

/// Blocklists the client's addresses, and returns when this client knows the map that says so. May our key not:
/// `permission_denied`, with the command for somebody who may.
Result<> fence(Connection& connection, const Bytes& identity);
Result<> sync_fences(Connection& connection);

}  // namespace lccfs::rados
