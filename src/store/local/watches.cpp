// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/watches.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

namespace lccfs::local {
namespace {

constexpr int backlog = 128;
// A client that connects and does not ask, or does not take its answers, holds up the others for no longer.
constexpr std::chrono::seconds patience{1};

// Nobody can be served without a descriptor; whoever waits in the backlog keeps accept() from waiting.
constexpr std::chrono::milliseconds until_descriptors_are_free{20};

using Moment = std::chrono::steady_clock::time_point;

std::chrono::microseconds left_until(Moment deadline) {
  return std::max(std::chrono::duration_cast<std::chrono::microseconds>(deadline - std::chrono::steady_clock::now()),
                  std::chrono::microseconds(1));
}

void limit_waits(const Descriptor& socket, int option, std::chrono::microseconds limit) {
  const timeval time{limit.count() / 1'000'000, limit.count() % 1'000'000};
  ::setsockopt(socket.get(), SOL_SOCKET, option, &time, sizeof time);
}

/// Packets that are as long as they may be must go through wherever the host's default for sockets is less.
Descriptor make_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const int room = 2 * packet_limit_bytes;
  if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  return socket;
}

/// By way of the open directory: such a path fits, however long the volume's is.
int at_address(decltype(::connect)& call, const Descriptor& socket, int clients, const std::string& id) {
  const std::string path = "/proc/self/fd/" + std::to_string(clients) + "/" + id + socket_suffix;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return call(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

bool send(const Descriptor& socket, const Bytes& packet) {
  return packet.size() <= packet_limit_bytes && ::send(socket.get(), packet.data(), packet.size(), MSG_NOSIGNAL) >= 0;
}

/// nullopt: there comes none.
std::optional<Bytes> receive(const Descriptor& socket) {
  Bytes packet(packet_limit_bytes, '\0');
  ssize_t size = 0;
  do {
    size = ::recv(socket.get(), packet.data(), packet.size(), 0);
  } while (size < 0 && errno == EINTR);
  if (size <= 0) return std::nullopt;
  packet.resize(static_cast<std::size_t>(size));
  return packet;
}

}  // namespace

struct Watches::Watching {
  std::string object;
  std::shared_ptr<WatchHandler> handler;
  Mutex calls;  // held over each call of the handler's
  bool ended GUARDED_BY(calls) = false;
};

Result<> Watches::start(int clients, const std::string& id) {
  listening_ = make_socket();
  if (!listening_ || at_address(::bind, listening_, clients, id) != 0 || ::listen(listening_.get(), backlog) != 0)
    return std::unexpected(system_error("make the client's socket"));
  try {
    thread_ = std::thread(&Watches::serve, this);
  } catch (const std::system_error& error) {
    return failure(ErrorCode::busy, std::string("start the client's thread: ") + error.what());
  }
  return {};
}

void Watches::stop() {
  if (!thread_.joinable()) return;
  ::shutdown(listening_.get(), SHUT_RDWR);
  thread_.join();
}

std::uint64_t Watches::add(const std::string& object, std::shared_ptr<WatchHandler> handler) {
  auto watching = std::make_shared<Watching>();
  watching->object = object;
  watching->handler = std::move(handler);
  const Lock lock(mutex_);
  watches_.emplace(++last_number_, std::move(watching));
  return last_number_;
}

void Watches::remove(std::uint64_t number) {
  std::shared_ptr<Watching> watching;
  {
    const Lock lock(mutex_);
    watching = std::move(watches_.at(number));
    watches_.erase(number);
  }
  const Lock no_call_is_running(watching->calls);
  watching->ended = true;
}

void Watches::lose_all(const Error& reason) {
  std::map<std::uint64_t, std::shared_ptr<Watching>> lost;
  {
    const Lock lock(mutex_);
    lost = watches_;  // they stay until they are removed, which waits for the calls below; `ended` silences them
  }
  for (const auto& [number, watching] : lost) {
    const Lock calling(watching->calls);
    if (!watching->ended) watching->handler->on_lost(reason);
    watching->ended = true;
  }
}

void Watches::serve() {
  for (;;) {
    Descriptor connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) {
      if (errno == EINVAL) return;  // stopped
      if (errno != EINTR) std::this_thread::sleep_for(until_descriptors_are_free);
      continue;
    }
    limit_waits(connection, SO_RCVTIMEO, patience);
    limit_waits(connection, SO_SNDTIMEO, patience);
    const auto question = receive(connection);
    const auto end = question ? question->find('\0') : Bytes::npos;
    if (end == Bytes::npos) continue;
    deliver(question->substr(0, end), question->substr(end + 1), std::make_shared<Descriptor>(std::move(connection)));
  }
}

/// The connection ends with the last function that may still answer on it.
void Watches::deliver(const std::string& object, const Bytes& payload, std::shared_ptr<const Descriptor> connection) {
  std::vector<std::shared_ptr<Watching>> asked;
  {
    const Lock lock(mutex_);
    for (const auto& [number, watching] : watches_)
      if (watching->object == object) asked.push_back(watching);
  }
  send(*connection, std::to_string(asked.size()));
  for (const auto& watching : asked) {
    const Lock calling(watching->calls);
    if (watching->ended) continue;
    watching->handler->on_notify(payload, [connection](const Bytes& answer) mutable {
      if (const auto here = std::move(connection)) send(*here, 'a' + answer);
    });
  }
}

// ---- the asker

namespace {

/// nullopt: that client is dead. None: it cannot be reached.
std::optional<Descriptor> ask(int clients, const std::string& id, const Bytes& question, Moment deadline) {
  Descriptor socket = make_socket();
  if (!socket) return socket;
  limit_waits(socket, SO_SNDTIMEO, left_until(deadline));
  if (at_address(::connect, socket, clients, id) == 0) return send(socket, question) ? std::move(socket) : Descriptor();
  if (errno == ECONNREFUSED || errno == ENOENT) return std::nullopt;
  return Descriptor();
}

/// What comes after the deadline is not waited for; what had come before it is taken.
void take_replies(const Descriptor& socket, Moment deadline, NotifyReply& reply) {
  const auto next = [&] {
    limit_waits(socket, SO_RCVTIMEO, left_until(deadline));
    return receive(socket);
  };
  unsigned silent = 1;  // not even told how many watches there are
  if (const auto count = next()) {
    std::from_chars(count->data(), count->data() + count->size(), silent);
    for (std::optional<Bytes> answer; silent > 0 && (answer = next()); --silent)
      reply.answers.push_back(answer->substr(1));
  }
  reply.silent += silent;  // if it died, the caller looks whether it still watches
}

}  // namespace

NotifyReply ask_clients(int clients, const std::vector<std::string>& ids, const std::string& object,
                        const Bytes& payload, std::chrono::milliseconds timeout) {
  const Moment deadline = std::chrono::steady_clock::now() + timeout;
  const std::string question = object + '\0' + payload;
  std::vector<Descriptor> asked;
  for (const std::string& id : ids)
    if (auto socket = ask(clients, id, question, deadline)) asked.push_back(std::move(*socket));
  NotifyReply reply;
  for (const Descriptor& socket : asked) take_replies(socket, deadline, reply);
  return reply;
}

}  // namespace lccfs::local
