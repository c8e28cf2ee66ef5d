// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gc/daemon.h"

#include <utility>

#include "base/log.h"
#include "base/periodic.h"
#include "gc/report.h"

namespace lccfs::gc {

Daemon::Daemon(OpenStore open_store, Clock& clock, const WorkerOptions& options, std::chrono::nanoseconds interval,
               metrics::CollectorCounts& counts)
    : open_store_(std::move(open_store)), clock_(clock), options_(options), interval_(interval), counts_(counts) {}

Result<> Daemon::start() {
  LCCFS_TRY(std::shared_ptr<ObjectStore> store, open_store_());
  LCCFS_TRY(worker_, Worker::start(std::move(store), clock_, options_));
  return {};
}

Result<> Daemon::run(const std::stop_token& stop) {
  do {
    take_turn(stop);
  } while (pause(clock_, interval_, stop));
  return worker_ && !worker_->fenced() ? worker_->end() : Result<>{};
}

void Daemon::take_turn(const std::stop_token& stop) {
  if (!has_client()) return;
  if (worker_->collector().another_is_at_work(interval_)) {
    counts_.left_to_another();
    return log::debug("another collector is at work: this turn is left to it");
  }
  pass(stop);
}

bool Daemon::has_client() {
  if (worker_ && worker_->fenced()) worker_.reset();
  if (worker_) return true;
  const auto started = start();
  if (!started) log::warning("cannot start again: " + started.error().context);
  return started.has_value();
}

void Daemon::pass(const std::stop_token& stop) {
  const auto report =
      worker_->collector().pass(stop, [this](const RemovedGarbage& so_far) { counts_.removed(so_far); });
  if (!report) {
    counts_.failed();
    return log::warning("this pass has failed, the next one continues: " + report.error().context);
  }
  counts_.passed({.items_left = report->items_left,
                  .silent_clients = report->silent.size(),
                  .damaged_objects = report->damaged.size(),
                  .refused = report->refused},
                 clock_.wall_time().seconds);
  log::write(did_something(*report) ? log::Level::info : log::Level::debug, report_line(*report));
  for (const std::string& line : warnings_of(*report)) log::warning(line);
}

}  // namespace lccfs::gc
