// SPDX-License-Identifier: LGPL-2.1-or-later
// The collector in the background: a pass, a pause, and so on. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>

#include "gc/worker.h"
#include "metrics/collector_counts.h"

namespace lccfs::gc {

class Daemon {
 public:
  /// A new store client of the volume.
  using OpenStore = std::function<Result<std::shared_ptr<ObjectStore>>()>;

  /// `counts` outlives the daemon.
  Daemon(OpenStore open_store, Clock& clock, const WorkerOptions& options, std::chrono::nanoseconds interval,
         metrics::CollectorCounts& counts);

  /// Connects, so that a start that must fail says so at once.
  Result<> start();

  /// A pass every interval, unless another collector has begun one meanwhile. Passes that fail are logged, and tried
  /// again at the next turn; one whose client was fenced, with a new client. The result is that of the clean end.
  Result<> run(const std::stop_token& stop);

 private:
  void take_turn(const std::stop_token& stop);
  bool has_client();
  void pass(const std::stop_token& stop);

  const OpenStore open_store_;
  Clock& clock_;
  const WorkerOptions options_;
  const std::chrono::nanoseconds interval_;
  metrics::CollectorCounts& counts_;
  std::unique_ptr<Worker> worker_;  // null: to be started at the next turn
};

}  // namespace lccfs::gc
