// SPDX-License-Identifier: LGPL-2.1-or-later
// Every client helps to reclaim what was removed: a thread of its own calls the collector about once a grace period.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <stop_token>
#include <thread>

#include "lccfs/file_system.h"

namespace lccfs::fuse {

class CollectorThread {
 public:
  /// `fs` outlives the thread, and is not unmounted before.
  explicit CollectorThread(FileSystem& fs);
  /// Returns after the store operations that are in flight.
  ~CollectorThread() = default;
  CollectorThread(const CollectorThread&) = delete;
  CollectorThread& operator=(const CollectorThread&) = delete;

 private:
  void work(const std::stop_token& stop);
  bool pause(const std::stop_token& stop);

  FileSystem& fs_;
  std::minstd_rand random_{std::random_device{}()};
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace lccfs::fuse
