// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Watches, and the notifies that reach them from any process. Each client has a socket in the directory of the clients;
// an asker connects to it anew for each notify. The socket keeps packets apart (SOCK_SEQPACKET); on one connection go
//
//   the question     object | NUL | payload
//   the replies      how many watches it reached (a decimal number), then 'a' | answer for each that answered
//
// and its end: a watch that has not answered by then, or by the time-out, is silent. No packet is longer than
// `packet_limit_bytes`.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "lccfs/object_store.h"
#include "store/local/descriptor.h"

namespace lccfs::local {

/// Several times a liveness poll's question or reply, and what a socket's default buffer takes.
inline constexpr std::size_t packet_limit_bytes = 128U << 10;

/// The watches of one client. One thread takes questions in and calls the handlers; answers go out from whatever thread
/// has them. Any thread may call any method.
class Watches {
 public:
  Watches() = default;
  ~Watches() { stop(); }
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  Result<> start(int clients, const std::string& id);
  void stop();

  /// Answers the watch's number.
  std::uint64_t add(const std::string& object, std::shared_ptr<WatchHandler> handler);
  /// No call of the handler's is running, or comes, after it.
  void remove(std::uint64_t number);
  void lose_all(const Error& reason);

 private:
  struct Watching;

  void serve();
  void deliver(const std::string& object, const Bytes& payload, std::shared_ptr<const Descriptor> connection);

  Descriptor listening_;
  std::thread thread_;
  Mutex mutex_;  // not held over a handler's calls
  std::uint64_t last_number_ GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, std::shared_ptr<Watching>> watches_ GUARDED_BY(mutex_);
};

/// Asks these clients at once, and returns when all have answered or the time is up. A dead client is not counted.
NotifyReply ask_clients(int clients, const std::vector<std::string>& ids, const std::string& object,
                        const Bytes& payload, std::chrono::milliseconds timeout);

/// A client's socket in the directory of the clients.
inline constexpr const char* socket_suffix = ".sock";

}  // namespace lccfs::local
