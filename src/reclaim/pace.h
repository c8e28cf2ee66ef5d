// SPDX-License-Identifier: LGPL-2.1-or-later
// How much of the store's strength a collector takes: steps in flight, and steps a second. Any thread; blocks, but not
// once it is stopped.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <utility>

#include "base/mutex.h"
#include "lccfs/clock.h"

namespace lccfs::reclaim {

/// How often whoever waits looks whether that is in vain.
inline constexpr std::chrono::seconds look_every{1};

class Pace {
 public:
  Pace(Clock& clock, unsigned jobs, std::uint64_t operations_per_second, std::stop_token stop)
      : clock_(clock),
        stop_(std::move(stop)),
        interval_(operations_per_second == 0 ? 0 : std::nano::den / operations_per_second),
        free_(jobs) {}

  /// Before each step that changes something: waits for its turn.
  void wait_for_turn() {
    if (interval_ == std::chrono::nanoseconds(0)) return;
    std::chrono::nanoseconds turn{0};
    {
      const Lock lock(mutex_);
      turn = std::max(next_, clock_.elapsed());
      next_ = turn + interval_;
    }
    for (auto now = clock_.elapsed(); now < turn && !stop_.stop_requested(); now = clock_.elapsed()) {
      clock_.sleep_for(std::min<std::chrono::nanoseconds>(turn - now, longest_sleep));
    }
  }

  /// Around each asynchronous step: waits for its turn, and for a place among those in flight. false: it is stopped, or
  /// `is_in_vain`, which is asked each second, says so.
  bool enter(const std::function<bool()>& is_in_vain) EXCLUDES(mutex_) {
    wait_for_turn();
    const std::stop_callback wake(stop_, [this] {
      const Lock lock(mutex_);
      left_.notify_all();
    });
    Lock lock(mutex_);
    while (!stop_.stop_requested()) {
      if (free_ != 0) {
        --free_;
        return true;
      }
      lock.unlock();
      if (is_in_vain()) return false;
      lock.lock();
      clock_.wait_for(left_, lock, look_every,
                      [this]() REQUIRES(mutex_) { return free_ != 0 || stop_.stop_requested(); });
    }
    return false;
  }
  void leave(std::size_t steps = 1) EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    free_ += steps;
    steps == 1 ? left_.notify_one() : left_.notify_all();
  }

 private:
  static constexpr std::chrono::milliseconds longest_sleep{100};

  Clock& clock_;
  const std::stop_token stop_;
  const std::chrono::nanoseconds interval_;
  Mutex mutex_;
  std::condition_variable left_;  // a step has, or it is stopped
  std::size_t free_ GUARDED_BY(mutex_);
  std::chrono::nanoseconds next_ GUARDED_BY(mutex_){0};  // when the next step may begin
};

}  // namespace lccfs::reclaim
