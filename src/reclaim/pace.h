// SPDX-License-Identifier: LGPL-2.1-or-later
// How much of the store's strength a collector takes: steps in flight, and steps a second. Any thread; blocks, but for
// its turn not once it is stopped.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <semaphore>
#include <stop_token>
#include <utility>

#include "base/mutex.h"
#include "lccfs/clock.h"

namespace lccfs::reclaim {

class Pace {
 public:
  Pace(Clock& clock, unsigned jobs, std::uint64_t operations_per_second, std::stop_token stop)
      : clock_(clock),
        stop_(std::move(stop)),
        interval_(operations_per_second == 0 ? 0 : std::nano::den / operations_per_second),
        free_(static_cast<std::ptrdiff_t>(jobs)) {}

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

  /// Around each asynchronous step.
  void enter() {
    wait_for_turn();
    free_.acquire();
  }
  void leave() { free_.release(); }

 private:
  static constexpr std::chrono::milliseconds longest_sleep{100};

  Clock& clock_;
  const std::stop_token stop_;
  const std::chrono::nanoseconds interval_;
  std::counting_semaphore<> free_;
  Mutex mutex_;
  std::chrono::nanoseconds next_ GUARDED_BY(mutex_){0};  // when the next step may begin
};

}  // namespace lccfs::reclaim
