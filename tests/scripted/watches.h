// SPDX-License-Identifier: LGPL-2.1-or-later
// Watches and notifies of a scripted cluster.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "scripted/scripted_store.h"

namespace lccfs {

struct ScriptedCluster::WatchState {
  std::string object;
  Bytes identity;  // whose watch it is
  std::shared_ptr<WatchHandler> handler;
  bool deaf = false;  // guarded by the cluster's lock
  std::mutex calls;   // held over each call of the handler's; guards `ended`
  bool ended = false;
};

class ScriptedWatch final : public Watch {
 public:
  ScriptedWatch(std::shared_ptr<ScriptedCluster> cluster, std::shared_ptr<ScriptedCluster::WatchState> state)
      : cluster_(std::move(cluster)), state_(std::move(state)) {}
  ~ScriptedWatch() override;

 private:
  const std::shared_ptr<ScriptedCluster> cluster_;
  const std::shared_ptr<ScriptedCluster::WatchState> state_;
};

/// One notify, waiting for its answers. An answer function that is dropped unused counts as silence at once, so that no
/// test waits for a time-out.
class ScriptedNotify : public std::enable_shared_from_this<ScriptedNotify> {
 public:
  std::move_only_function<void(Bytes)> expect_answer();
  /// A watcher that does not answer: it takes the time-out, or is counted at once.
  void expect_silence(bool takes_time);
  NotifyReply wait(std::chrono::milliseconds timeout, Clock* clock);

 private:
  struct Ticket;
  void settle(std::optional<Bytes> answer);

  std::mutex mutex_;
  std::condition_variable changed_;
  NotifyReply reply_;
  unsigned expected_ = 0;
};

}  // namespace lccfs
