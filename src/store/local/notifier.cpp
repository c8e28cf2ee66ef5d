// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/notifier.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>

#include "store/local/descriptor.h"

namespace lccfs::local {
namespace {

using Moment = std::chrono::steady_clock::time_point;

std::chrono::microseconds left_until(Moment deadline) {
  return std::max(std::chrono::duration_cast<std::chrono::microseconds>(deadline - std::chrono::steady_clock::now()),
                  std::chrono::microseconds(1));
}

/// One client that was asked.
struct Asked {
  Descriptor socket;
  Bytes received;
  std::optional<std::uint32_t> missing;  // answers; nullopt: not even told how many there will be
  bool over = false;

  unsigned silent() const { return missing.value_or(1); }
};

enum class Reached { yes, dead, no };

Reached ask(Asked& asked, int clients, const std::string& id, const Bytes& question, Moment deadline) {
  asked.socket = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!asked.socket) return Reached::no;
  const auto left = left_until(deadline);
  const timeval timeout{left.count() / 1'000'000, left.count() % 1'000'000};
  ::setsockopt(asked.socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  const std::string path = socket_path(clients, id);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(asked.socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno == ECONNREFUSED || errno == ENOENT ? Reached::dead : Reached::no;
  return send_all(asked.socket.get(), question) ? Reached::yes : Reached::no;
}

void receive(Asked& asked, NotifyReply& reply) {
  std::array<char, 16384> buffer;
  const ssize_t size = ::recv(asked.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {  // it died: whoever acts on this looks whether it still watches
    asked.over = true;
    reply.silent += asked.silent();
    return;
  }
  asked.received.append(buffer.data(), static_cast<std::size_t>(size));
  if (!asked.missing) asked.missing = take_watch_count(asked.received);
  while (asked.missing.value_or(0) > 0) {
    auto answer = take_answer(asked.received);
    if (!answer) break;
    --*asked.missing;
    if (*answer) {
      reply.answers.push_back(std::move(**answer));
    } else {
      ++reply.silent;
    }
  }
  asked.over = asked.missing == 0U;
}

}  // namespace

NotifyReply ask_clients(int clients, const std::vector<std::string>& ids, const NotifyQuestion& question,
                        std::chrono::milliseconds timeout) {
  const Moment deadline = std::chrono::steady_clock::now() + timeout;
  const Bytes frame = encode_question(question);
  NotifyReply reply;
  std::list<Asked> all;
  for (const std::string& id : ids) {
    Asked asked;
    const Reached reached = ask(asked, clients, id, frame, deadline);
    if (reached == Reached::yes) all.push_back(std::move(asked));
    if (reached == Reached::no) ++reply.silent;
  }
  while (!all.empty() && std::chrono::steady_clock::now() < deadline) {
    std::vector<pollfd> waiting;
    for (const Asked& asked : all) waiting.push_back({asked.socket.get(), POLLIN, 0});
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left_until(deadline)).count();
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(milliseconds)) <= 0) continue;
    auto next = waiting.begin();
    for (Asked& asked : all)
      if ((next++)->revents) receive(asked, reply);
    all.remove_if([](const Asked& asked) { return asked.over; });
  }
  for (const Asked& asked : all) reply.silent += asked.silent();
  return reply;
}

}  // namespace lccfs::local
