// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/notify_frames.h"

#include <sys/socket.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "base/bytes.h"

namespace lccfs::local {
namespace {

void put_size(ByteWriter& out, const Bytes& bytes) { out.put(static_cast<std::uint32_t>(bytes.size())); }

/// What was decoded leaves `received`; while its end has not come yet, all stays.
template <class Frame>
std::optional<Frame> taken(Bytes& received, const ByteReader& in, Frame frame) {
  if (!in.good()) return std::nullopt;
  received.erase(0, in.position());
  return frame;
}

}  // namespace

Bytes encode_question(const NotifyQuestion& question) {
  ByteWriter out;
  put_size(out, question.object);
  put_size(out, question.payload);
  out.put_raw(question.object);
  out.put_raw(question.payload);
  return out.take();
}

Bytes encode_watch_count(std::uint32_t count) {
  ByteWriter out;
  out.put(count);
  return out.take();
}

Bytes encode_answer(const std::optional<Bytes>& answer) {
  ByteWriter out;
  out.put(std::uint32_t{answer ? 1U : 0U});
  out.put_string(answer.value_or(Bytes()));
  return out.take();
}

std::optional<NotifyQuestion> take_question(Bytes& received) {
  ByteReader in(received);
  const auto object_bytes = in.get<std::uint32_t>(), payload_bytes = in.get<std::uint32_t>();
  NotifyQuestion question;
  question.object = in.get_raw(object_bytes);
  question.payload = in.get_raw(payload_bytes);
  return taken(received, in, std::move(question));
}

std::optional<std::uint32_t> take_watch_count(Bytes& received) {
  ByteReader in(received);
  const auto count = in.get<std::uint32_t>();
  return taken(received, in, count);
}

std::optional<std::optional<Bytes>> take_answer(Bytes& received) {
  ByteReader in(received);
  const bool answered = in.get<std::uint32_t>() != 0;
  auto bytes = in.get_string();
  return taken(received, in, answered ? std::optional(std::move(bytes)) : std::nullopt);
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
