// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gc/worker.h"

#include "gc/report.h"
#include "objects/super.h"

namespace lccfs::gc {

using reclaim::PassReport;

namespace {

/// Other clients may keep making garbage: what they make from then on is for the next run.
constexpr int most_passes = 8;

reclaim::CollectorOptions collector_options(const WorkerOptions& options, std::chrono::seconds grace_of_volume) {
  return {.jobs = options.jobs,
          .operations_per_second = options.operations_per_second,
          .grace = options.grace.value_or(grace_of_volume)};
}

Result<PassReport> run_passes(Worker& worker, const std::stop_token& stop, const OnGarbageRemoved& on_removed) {
  PassReport total;
  const auto tell = [&](const RemovedGarbage& in_this_pass) {
    if (!on_removed) return;
    on_removed({total.inodes_removed + in_this_pass.inodes, total.data_objects_removed + in_this_pass.data_objects,
                total.bytes_freed + in_this_pass.bytes});
  };
  for (int number = 0; number < most_passes && !stop.stop_requested(); ++number) {
    LCCFS_TRY(const PassReport report, worker.collector().pass(stop, tell));
    add_pass(total, report);
    if (!did_something(report)) break;
  }
  return total;
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::start(std::shared_ptr<ObjectStore> store, Clock& clock,
                                              const WorkerOptions& options) {
  std::unique_ptr<Worker> worker(new Worker);
  LCCFS_TRY(worker->instance_,
            Instance::start(std::move(store), clock, {.mount_id = "lccfs-gc", .makes_inodes = false}));
  const std::chrono::seconds grace(worker->instance_->super().grace_seconds);
  worker->collector_ = std::make_unique<reclaim::Collector>(*worker->instance_, collector_options(options, grace));
  return worker;
}

Result<> Worker::end() {
  collector_.reset();
  return instance_->end();
}

Result<PassReport> collect_once(const std::shared_ptr<ObjectStore>& store, Clock& clock, const WorkerOptions& options,
                                const std::stop_token& stop, const OnGarbageRemoved& on_removed) {
  LCCFS_TRY(const auto worker, Worker::start(store, clock, options));
  auto report = run_passes(*worker, stop, on_removed);
  const auto ended = worker->end();  // also if a pass failed: else each run would leave one to be fenced
  if (report && !ended) return std::unexpected(ended.error());
  return report;
}

Result<PassReport> look_once(ObjectStore& store, Clock& clock, const WorkerOptions& options) {
  LCCFS_TRY(const auto super, objects::read_super(objects::reader_of(store)));
  const std::chrono::seconds grace(super.record.grace_seconds);
  return reclaim::dry_run(store, clock, collector_options(options, grace));
}

}  // namespace lccfs::gc
