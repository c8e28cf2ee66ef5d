// SPDX-License-Identifier: LGPL-2.1-or-later
// One client of a volume that collects: its instance, and the collector that works for it. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>

#include "reclaim/collector.h"

namespace lccfs::gc {

struct WorkerOptions {
  unsigned jobs = 16;
  std::uint64_t operations_per_second = 0;    ///< 0: no limit
  std::optional<std::chrono::seconds> grace;  ///< nullopt: the volume's own
};

class Worker {
 public:
  static Result<std::unique_ptr<Worker>> start(std::shared_ptr<ObjectStore> store, Clock& clock,
                                               const WorkerOptions& options);

  /// The clean end of the instance; nothing else may follow.
  Result<> end();

  reclaim::Collector& collector() { return *collector_; }
  bool fenced() const { return instance_->fenced(); }

 private:
  Worker() = default;

  std::unique_ptr<Instance> instance_;
  std::unique_ptr<reclaim::Collector> collector_;
};

/// Does all that can be done now, and ends. Errors are the store's. `on_removed` is told of all its passes
/// together.
Result<reclaim::PassReport> collect_once(const std::shared_ptr<ObjectStore>& store, Clock& clock,
                                         const WorkerOptions& options, const std::stop_token& stop,
                                         const OnGarbageRemoved& on_removed = nullptr);

/// What that would do; changes nothing. not_found: there is no volume.
Result<reclaim::PassReport> look_once(ObjectStore& store, Clock& clock, const WorkerOptions& options);

}  // namespace lccfs::gc
