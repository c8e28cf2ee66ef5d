// SPDX-License-Identifier: LGPL-2.1-or-later
//
// One time for a world of threads. It stands still while any of them works, and moves on to the next event once every
// thread of this process sleeps: whether it waits for the store, for another thread or for the time. So a case of many
// minutes takes as long as its work, and no wait needs to be known of here. One event happens at a time, so that what a
// case does is the same every time, but for what threads do that one event has set going.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lccfs/clock.h"

namespace lccfs::test {

class SimulatedTime {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  Nanoseconds now() const;
  /// `act` happens then, by the thread that runs the time, while all others sleep. It must not block.
  using Event = std::pair<Nanoseconds, std::uint64_t>;
  Event at(Nanoseconds when, std::function<void()> act);
  /// It need not happen any more, if it has not.
  void cancel(const Event& event);

  // -- by one thread, which does nothing else
  /// Lets happen what happens until then.
  void run_until(Nanoseconds end);
  /// The same, but no longer than until `done`, which is looked at while all others sleep. Whether it is.
  bool run_until(const std::function<bool()>& done, Nanoseconds end);

 private:
  mutable std::mutex mutex_;  // guards all below
  Nanoseconds now_{0};
  std::map<Event, std::function<void()>> events_;  // of one moment: in the order in which they were made
  std::uint64_t made_ = 0;
};

/// A client's own clock on it. It may be behind or ahead of others', its wall clock anything; and its process may stand
/// still, and continue (SIGSTOP, SIGCONT): whoever wants to know or wait for the time then waits for that first.
class SimulatedClock final : public Clock {
 public:
  struct Options {
    std::chrono::nanoseconds ahead{0};          ///< of elapsed time
    std::int64_t wall_seconds = 1'700'000'000;  ///< at the beginning
    int wall_rate = 1;                          ///< seconds of wall time in a second; negative: it runs backwards
  };
  SimulatedClock(SimulatedTime& time, const Options& options) : time_(time), options_(options) {}

  std::chrono::nanoseconds elapsed() const override;
  TimeSpec wall_time() const override;
  void sleep_for(std::chrono::nanoseconds duration) override;
  bool wait_for(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds duration,
                const std::function<bool()>& done) override;

  /// By the thread that runs the time.
  void stop();
  void resume();

 private:
  /// A busy machine wakes nobody sooner. Whoever asks anew every 20 ms asks often enough, and cases stay short.
  static constexpr std::chrono::milliseconds least_pause{250};
  struct Alarm;
  void wait_for_leave() const;
  void ring(const std::shared_ptr<Alarm>& alarm);

  SimulatedTime& time_;
  const Options options_;
  mutable std::mutex mutex_;  // guards both below
  mutable std::condition_variable resumed_;
  bool stopped_ = false;
  std::vector<std::shared_ptr<Alarm>> missed_;  // that would have rung while it stood still
};

}  // namespace lccfs::test
