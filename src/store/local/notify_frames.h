// SPDX-License-Identifier: LGPL-2.1-or-later
// What goes over a client's socket for one notify (numbers: 32 bits, little-endian):
//
//   question   object's size | payload's size | object | payload
//   reply      number of watches | one for each of them, in any order: 1 | size | answer
//                                                                    or 0 | 0: it will be silent
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lccfs/types.h"

namespace lccfs::local {

struct NotifyQuestion {
  std::string object;
  Bytes payload;
};

Bytes encode_question(const NotifyQuestion& question);
Bytes encode_watch_count(std::uint32_t count);
Bytes encode_answer(const std::optional<Bytes>& answer);

/// Takes a whole question off the front of `received`, if there is one.
std::optional<NotifyQuestion> take_question(Bytes& received);
std::optional<std::uint32_t> take_watch_count(Bytes& received);
/// The outer nullopt: not all here yet; the inner one: silent.
std::optional<std::optional<Bytes>> take_answer(Bytes& received);

/// The socket's name in the directory of the clients.
inline constexpr const char* socket_suffix = ".sock";
inline std::string socket_name(const std::string& id) { return id + socket_suffix; }
/// A path to it that fits a socket address, however long the volume's path is.
std::string socket_path(int clients, const std::string& id);

/// Sends all or nothing more: the socket's send time-out and a peer that is gone end it. false: not all was sent.
bool send_all(int socket, const Bytes& bytes);

}  // namespace lccfs::local
