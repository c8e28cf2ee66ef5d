// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/notify_frames.h"

#include <sys/socket.h>

#include <cerrno>
#include <string_view>

namespace lccfs::local {
namespace {

constexpr std::size_t number_bytes = 4;

void append(Bytes& out, std::size_t number) {
  for (std::size_t i = 0; i < number_bytes; ++i) out.push_back(static_cast<char>((number >> (8 * i)) & 0xff));
}

std::uint32_t number_at(std::string_view bytes, std::size_t position) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < number_bytes; ++i)
    number |= std::uint32_t{static_cast<unsigned char>(bytes[position + i])} << (8 * i);
  return number;
}

}  // namespace

Bytes encode_question(const NotifyQuestion& question) {
  Bytes out;
  append(out, question.object.size());
  append(out, question.payload.size());
  return out + question.object + question.payload;
}

Bytes encode_watch_count(std::uint32_t count) {
  Bytes out;
  append(out, count);
  return out;
}

Bytes encode_answer(const std::optional<Bytes>& answer) {
  Bytes out;
  append(out, answer ? 1 : 0);
  append(out, answer ? answer->size() : 0);
  return answer ? out + *answer : out;
}

std::optional<NotifyQuestion> take_question(Bytes& received) {
  constexpr std::size_t start = 2 * number_bytes;
  if (received.size() < start) return std::nullopt;
  const std::size_t object_bytes = number_at(received, 0), payload_bytes = number_at(received, number_bytes);
  if (received.size() < start + object_bytes + payload_bytes) return std::nullopt;
  NotifyQuestion question{received.substr(start, object_bytes), received.substr(start + object_bytes, payload_bytes)};
  received.erase(0, start + object_bytes + payload_bytes);
  return question;
}

std::optional<std::uint32_t> take_watch_count(Bytes& received) {
  if (received.size() < number_bytes) return std::nullopt;
  const std::uint32_t count = number_at(received, 0);
  received.erase(0, number_bytes);
  return count;
}

std::optional<std::optional<Bytes>> take_answer(Bytes& received) {
  constexpr std::size_t start = 2 * number_bytes;
  if (received.size() < start) return std::nullopt;
  const bool answered = number_at(received, 0) != 0;
  const std::size_t size = number_at(received, number_bytes);
  if (received.size() < start + size) return std::nullopt;
  std::optional<Bytes> answer;
  if (answered) answer = received.substr(start, size);
  received.erase(0, start + size);
  return answer;
}

std::string socket_path(int clients, const std::string& id) {
  return "/proc/self/fd/" + std::to_string(clients) + "/" + socket_name(id);
}

bool send_all(int socket, const Bytes& bytes) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t sent = ::send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace lccfs::local
