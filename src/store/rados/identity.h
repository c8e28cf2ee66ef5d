// SPDX-License-Identifier: LGPL-2.1-or-later
// What identifies a RADOS client, and how it is barred.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lccfs/result.h"
#include "lccfs/types.h"

namespace lccfs::rados {

/// The blocklist has no "for ever". Nobody's request stays on its way for ten years.
inline constexpr std::uint32_t blocklist_seconds = 10U * 365 * 24 * 3600;

struct Identity {
  std::uint64_t instance_id = 0;       ///< RADOS's global id, what a watcher is listed under
  std::vector<std::string> addresses;  ///< with nonce, as the monitors write them
};

/// Of what librados says of its client: its global id, and its addresses in one text.
Identity identity_of(std::uint64_t instance_id, const std::string& addresses);
Bytes encode_identity(const Identity& identity);
/// `corrupt` unless each address is one that a single client can have: an IP address, a port, and a nonce of four
/// digits or more. Somebody wrote them into the volume, and they end in commands to the monitors.
Result<Identity> parse_identity(const Bytes& bytes);
/// Calls `connect`, for a new client each time, until it answers the identity of one that others can look for and fence.
/// librados draws the nonce by chance, and one in four million is too short. `unsupported` after some in vain.
Result<Identity> first_that_can_be_fenced(const std::function<Result<Identity>()>& connect);
/// Whether all their addresses have an IP address of ours. Where hosts have several of them, "no" proves nothing.
bool has_our_ip_address(const Identity& ours, const Identity& theirs);
/// An address without the protocol before it, as watchers are listed with it.
std::string_view without_protocol(std::string_view address);
/// The commands that fence it, for a shell.
std::string commands_for(const Identity& client);

}  // namespace lccfs::rados
