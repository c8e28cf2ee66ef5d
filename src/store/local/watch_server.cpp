// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/watch_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>

namespace lccfs::local {
namespace {

constexpr int backlog = 128;
constexpr timeval send_timeout{1, 0};  // an asker that does not take its answers in does without

}  // namespace

struct WatchServer::Watching {
  std::string object;
  std::shared_ptr<WatchHandler> handler;
  std::mutex calls;  // held over each call of the handler's; guards `ended`
  bool ended = false;
};

struct WatchServer::Connection {
  explicit Connection(Descriptor accepted) : socket(std::move(accepted)) {}
  void send(const Bytes& frame) {
    const std::lock_guard lock(sending);
    send_all(socket.get(), frame);
  }

  const Descriptor socket;
  Bytes received;  // the serving thread's own
  std::mutex sending;
};

/// What a handler is given to answer with. Dropped unused it says so, so that the asker need not wait.
class WatchServer::AnswerDuty {
 public:
  explicit AnswerDuty(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  AnswerDuty(AnswerDuty&&) = default;
  AnswerDuty& operator=(AnswerDuty&&) = delete;
  ~AnswerDuty() {
    if (connection_) connection_->send(encode_answer(std::nullopt));
  }
  void operator()(Bytes answer) {
    if (const auto connection = std::move(connection_)) connection->send(encode_answer(std::move(answer)));
  }

 private:
  std::shared_ptr<Connection> connection_;
};

Result<> WatchServer::start(int clients, const std::string& id) {
  const std::string path = socket_path(clients, id);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  listening_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  stop_event_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
  if (!listening_ || !stop_event_) return std::unexpected(system_error("make the client's socket"));
  if (::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening_.get(), backlog) != 0)
    return std::unexpected(system_error("make the client's socket"));
  thread_ = std::thread(&WatchServer::serve, this);
  return {};
}

void WatchServer::stop() {
  if (!thread_.joinable()) return;
  ::eventfd_write(stop_event_.get(), 1);
  thread_.join();
}

std::uint64_t WatchServer::add(const std::string& object, std::shared_ptr<WatchHandler> handler) {
  auto watching = std::make_shared<Watching>();
  watching->object = object;
  watching->handler = std::move(handler);
  const std::lock_guard lock(mutex_);
  watches_.emplace(++last_number_, std::move(watching));
  return last_number_;
}

void WatchServer::remove(std::uint64_t number) {
  std::shared_ptr<Watching> watching;
  {
    const std::lock_guard lock(mutex_);
    const auto found = watches_.find(number);
    if (found == watches_.end()) return;
    watching = std::move(found->second);
    watches_.erase(found);
  }
  const std::lock_guard no_call_is_running(watching->calls);
  watching->ended = true;
}

void WatchServer::lose_all(const Error& reason) {
  std::map<std::uint64_t, std::shared_ptr<Watching>> lost;
  {
    const std::lock_guard lock(mutex_);
    lost = watches_;  // they stay until they are removed, which waits for the calls below; `ended` silences them
  }
  for (const auto& [number, watching] : lost) {
    const std::lock_guard calling(watching->calls);
    if (!watching->ended) watching->handler->on_lost(reason);
    watching->ended = true;
  }
}

void WatchServer::serve() {
  for (;;) {
    std::vector<pollfd> waiting{{stop_event_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
    for (const auto& connection : connections_) waiting.push_back({connection->socket.get(), POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
    if (waiting[0].revents) return;
    std::vector<std::shared_ptr<Connection>> kept;
    for (std::size_t i = 0; i < connections_.size(); ++i)
      if (!waiting[i + 2].revents || receive(connections_[i])) kept.push_back(connections_[i]);
    connections_ = std::move(kept);
    if (waiting[1].revents) accept_connection();
  }
}

void WatchServer::accept_connection() {
  Descriptor accepted(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted) return;
  ::setsockopt(accepted.get(), SOL_SOCKET, SO_SNDTIMEO, &send_timeout, sizeof send_timeout);
  connections_.push_back(std::make_shared<Connection>(std::move(accepted)));
}

bool WatchServer::receive(const std::shared_ptr<Connection>& connection) {
  std::array<char, 16384> buffer;
  const ssize_t size = ::recv(connection->socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) return false;
  connection->received.append(buffer.data(), static_cast<std::size_t>(size));
  if (const auto question = take_question(connection->received)) deliver(connection, *question);
  return true;
}

void WatchServer::deliver(const std::shared_ptr<Connection>& connection, const NotifyQuestion& question) {
  std::vector<std::shared_ptr<Watching>> asked;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, watching] : watches_)
      if (watching->object == question.object) asked.push_back(watching);
  }
  connection->send(encode_watch_count(static_cast<std::uint32_t>(asked.size())));
  for (const auto& watching : asked) {
    AnswerDuty duty(connection);
    const std::lock_guard calling(watching->calls);
    if (!watching->ended) watching->handler->on_notify(question.payload, std::move(duty));
  }
}

}  // namespace lccfs::local
