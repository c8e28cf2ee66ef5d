// SPDX-License-Identifier: LGPL-2.1-or-later
// Asks an http_server.h: for programs that somebody waits for.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "lccfs/result.h"

namespace lccfs::metrics {

/// Where a server listens: a socket in the file system, or an address in numbers and a port.
struct HttpPlace {
  std::string socket;  ///< not empty: this
  std::string address;
  std::uint16_t port = 0;
};

/// As errors name it.
std::string shown(const HttpPlace& place);

/// The body of its answer. timed_out, `not_found`: nobody listens there; permission_denied; `invalid`: the server has
/// refused; its status, and the beginning of what it says.
Result<std::string> http_ask(const HttpPlace& place, const std::string& method, const std::string& path,
                             const std::string& body = "", std::chrono::seconds patience = std::chrono::seconds(5));

}  // namespace lccfs::metrics
