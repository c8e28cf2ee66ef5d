// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace lccfs::fuse {

/// Calls `work` once a period, on a thread of its own, for as long as it lives.
class Ticker {
 public:
  Ticker(std::chrono::milliseconds period, std::function<void()> work)
      : thread_([this, period, work = std::move(work)](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          while (!stop.stop_requested()) {
            stopped_.wait_for(lock, stop, period, [] { return false; });
            if (!stop.stop_requested()) work();
          }
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace lccfs::fuse
