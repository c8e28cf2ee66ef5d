// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The watches of one client, and the socket over which notifies reach them: one thread takes questions in and calls
// the handlers; answers go out from whatever thread has them. Who asks, from whatever process, connects anew for each
// notify (notifier.h). Any thread may call any method.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lccfs/object_store.h"
#include "store/local/descriptor.h"
#include "store/local/notify_frames.h"

namespace lccfs::local {

class WatchServer {
 public:
  WatchServer() = default;
  ~WatchServer() { stop(); }
  WatchServer(const WatchServer&) = delete;
  WatchServer& operator=(const WatchServer&) = delete;

  Result<> start(int clients, const std::string& id);
  void stop();

  /// Answers the watch's number.
  std::uint64_t add(const std::string& object, std::shared_ptr<WatchHandler> handler);
  /// No call of the handler's is running, or comes, behind it.
  void remove(std::uint64_t number);
  void lose_all(const Error& reason);

 private:
  struct Watching;
  struct Connection;
  class AnswerDuty;

  void serve();
  void accept_connection();
  /// false: the connection is done with.
  bool receive(const std::shared_ptr<Connection>& connection);
  void deliver(const std::shared_ptr<Connection>& connection, const NotifyQuestion& question);

  Descriptor listening_, stop_event_;
  std::thread thread_;
  std::vector<std::shared_ptr<Connection>> connections_;  // the thread's own

  std::mutex mutex_;  // guards the rest; not held over a handler's calls
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Watching>> watches_;
};

}  // namespace lccfs::local
