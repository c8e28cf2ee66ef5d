// SPDX-License-Identifier: LGPL-2.1-or-later
// A clock that stands still until somebody sleeps or the test moves it on. Any thread.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "lccfs/clock.h"

namespace lccfs::test {

class FakeClock : public Clock {
 public:
  std::chrono::nanoseconds elapsed() const override {
    const std::lock_guard lock(mutex_);
    return elapsed_;
  }
  TimeSpec wall_time() const override {
    if (before_wall_time) before_wall_time();
    const auto since_start = elapsed();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_start);
    return {start_seconds + seconds.count(), static_cast<std::uint32_t>((since_start - seconds).count())};
  }
  /// Called by any thread that asks for the time: it may stand still there. Set before other threads are at work, and
  /// left so.
  std::function<void()> before_wall_time;
  void sleep_for(std::chrono::nanoseconds duration) override { advance(duration); }
  /// Whoever waits for something finds that it has waited for long enough.
  std::atomic<bool> waits_end_at_once = false;
  /// So many times as long, in real time: for who counts what comes of an answer in time, on a busy machine.
  std::atomic<int> patience = 1;
  bool wait_for(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds duration,
                const std::function<bool()>& done) override {
    return waits_end_at_once ? done() : Clock::wait_for(changed, lock, patience.load() * duration, done);
  }

  void advance(std::chrono::nanoseconds duration) {
    const std::lock_guard lock(mutex_);
    elapsed_ += duration;
  }

 private:
  static constexpr std::int64_t start_seconds = 1'700'000'000;
  mutable std::mutex mutex_;
  std::chrono::nanoseconds elapsed_{0};
};

}  // namespace lccfs::test
