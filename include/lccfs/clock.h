// SPDX-License-Identifier: LGPL-2.1-or-later
// Time comes in by constructor, so that no test sleeps.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "lccfs/types.h"

namespace lccfs {

/// May be called by any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Time since boot, suspend included (CLOCK_BOOTTIME): the only one that durations are measured with.
  virtual std::chrono::nanoseconds elapsed() const = 0;
  /// Wall time, for timestamps that people see. Nothing is decided by it.
  virtual TimeSpec wall_time() const = 0;
  /// Pauses the calling thread. A test clock returns at once, or moves its time on.
  virtual void sleep_for(std::chrono::nanoseconds duration) = 0;
  /// As std::condition_variable's: waits until `done`, at most for so long; whether it is. Unless a test clock plays
  /// it, time passes as the machine's does.
  virtual bool wait_for(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                        std::chrono::nanoseconds duration, const std::function<bool()>& done) {
    return changed.wait_for(lock, duration, done);
  }
};

/// The machine's clock.
Clock& system_clock();

}  // namespace lccfs
