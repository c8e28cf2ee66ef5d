// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

namespace lccfs::metrics {

/// Where running programs have what others find them by: root's below /run, another user's in $XDG_RUNTIME_DIR; empty:
/// nowhere.
std::string run_folder();

/// Removes the socket if nobody listens on it: its process was killed. Does not block. Nobody may have a socket of that
/// name before it listens (HttpServer::listen_on_socket).
void remove_dead_socket(const std::string& path);
/// The same of all "*.sock" in a folder. What cannot be removed stays.
void remove_dead_sockets(const std::string& folder);

}  // namespace lccfs::metrics
