// SPDX-License-Identifier: LGPL-2.1-or-later
// How much of the store's strength a collector takes: steps in flight, and steps a second. Any thread; blocks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <semaphore>

#include "lccfs/clock.h"

namespace lccfs::reclaim {

class Pace {
 public:
  Pace(Clock& clock, unsigned jobs, std::uint64_t operations_per_second)
      : clock_(clock),
        interval_(operations_per_second == 0 ? 0 : std::nano::den / operations_per_second),
        free_(static_cast<std::ptrdiff_t>(jobs)) {}

  /// Before each step that changes something: waits for its turn.
  void wait_for_turn() {
    if (interval_ == std::chrono::nanoseconds(0)) return;
    std::chrono::nanoseconds wait{0};
    {
      const std::lock_guard lock(mutex_);
      const auto now = clock_.elapsed();
      next_ = std::max(next_, now);
      wait = next_ - now;
      next_ += interval_;
    }
    if (wait > std::chrono::nanoseconds(0)) clock_.sleep_for(wait);
  }

  /// Around each asynchronous step.
  void enter() {
    wait_for_turn();
    free_.acquire();
  }
  void leave() { free_.release(); }

 private:
  Clock& clock_;
  const std::chrono::nanoseconds interval_;
  std::counting_semaphore<> free_;
  std::mutex mutex_;  // guards when the next step may begin
  std::chrono::nanoseconds next_{0};
};

}  // namespace lccfs::reclaim
