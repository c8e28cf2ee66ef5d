// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/collector_thread.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "base/log.h"
#include "base/periodic.h"
#include "base/text.h"

namespace lccfs::fuse {
namespace {

constexpr std::chrono::milliseconds shortest_period{1000};

void tell(const GarbageReport& report) {
  if (report.inodes_removed + report.data_objects_removed == 0) return;
  log::info("reclaimed " + count_text(report.inodes_removed) + " inodes and " +
            count_text(report.data_objects_removed) + " data objects, " + size_text(report.bytes_freed));
}

bool collect(FileSystem& fs, Clock& clock, metrics::CollectorCounts& counts, const std::stop_token& stop) {
  const auto report = fs.collect_garbage(stop, [&counts](const RemovedGarbage& so_far) { counts.removed(so_far); });
  if (report && report->is_left_to_another) {
    counts.left_to_another();
    return true;
  }
  if (report) {
    counts.passed({.items_left = report->items_left,
                   .silent_clients = report->silent_clients,
                   .damaged_objects = report->damaged_objects,
                   .refused = report->refused},
                  clock.wall_time().seconds);
    tell(*report);
    return true;
  }
  counts.failed();
  if (report.error().code == ErrorCode::fenced) return false;
  log::warning("cannot reclaim what was removed, will try again: " + report.error().context);
  return true;
}

}  // namespace

std::jthread start_collector_thread(FileSystem& fs, Clock& clock, metrics::CollectorCounts& counts) {
  // From half a period to one and a half: mounts that were made together do not all come at once.
  const auto pause = [&fs, random = std::minstd_rand(std::random_device()())]() mutable -> std::chrono::nanoseconds {
    const auto period = std::max<std::chrono::milliseconds>(fs.grace_period(), shortest_period);
    std::uniform_int_distribution<std::int64_t> around(period.count() / 2, period.count() * 3 / 2);
    return std::chrono::milliseconds(around(random));
  };
  return run_periodically(
      clock, pause, [&fs, &clock, &counts](const std::stop_token& stop) { return collect(fs, clock, counts, stop); });
}

}  // namespace lccfs::fuse
