// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/collector_thread.h"

#include <algorithm>
#include <string>

#include "base/log.h"
#include "base/text.h"

namespace lccfs::fuse {
namespace {

constexpr std::chrono::milliseconds shortest_period{1000};

void tell(const GarbageReport& report) {
  if (report.inodes_removed + report.data_objects_removed == 0) return;
  log::info("reclaimed " + count_text(report.inodes_removed) + " inodes and " +
            count_text(report.data_objects_removed) + " data objects, " + size_text(report.bytes_freed));
}

}  // namespace

CollectorThread::CollectorThread(FileSystem& fs)
    : fs_(fs), thread_([this](const std::stop_token& stop) { work(stop); }) {}

void CollectorThread::work(const std::stop_token& stop) {
  while (pause(stop)) {
    const auto report = fs_.collect_garbage(stop);
    if (report) {
      tell(*report);
    } else if (report.error().code == ErrorCode::fenced) {
      return;
    } else {
      log::warning("cannot reclaim what was removed, will try again: " + report.error().context);
    }
  }
}

/// From half a period to one and a half: mounts that were made together do not all come at once.
bool CollectorThread::pause(const std::stop_token& stop) {
  const auto period = std::max<std::chrono::milliseconds>(fs_.grace_period(), shortest_period);
  std::uniform_int_distribution<std::int64_t> around(period.count() / 2, period.count() * 3 / 2);
  std::unique_lock lock(mutex_);
  stopped_.wait_for(lock, stop, std::chrono::milliseconds(around(random_)), [] { return false; });
  return !stop.stop_requested();
}

}  // namespace lccfs::fuse
