// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/periodic.h"

#include <atomic>
#include <vector>

#include "support/catch.h"
#include "support/simulated_time.h"

namespace lccfs {
namespace {

using std::chrono::seconds;
using test::SimulatedClock;
using test::SimulatedTime;

TEST_CASE("work is done after each pause, however long the next one is to be") {
  SimulatedTime time;
  SimulatedClock clock(time, {});
  seconds period{1};
  std::vector<std::chrono::nanoseconds> done;
  const auto thread = run_periodically(
      clock, [&] { return std::exchange(period, period * 2); },
      [&](const std::stop_token&) {
        done.push_back(clock.elapsed());
        return true;
      });
  time.run_until(seconds(20));
  CHECK(done == std::vector<std::chrono::nanoseconds>{seconds(1), seconds(3), seconds(7), seconds(15)});
}

TEST_CASE("work that answers false is done no more") {
  SimulatedTime time;
  SimulatedClock clock(time, {});
  std::atomic<int> calls{0};
  const auto thread = run_periodically(
      clock, [] { return seconds(1); }, [&](const std::stop_token&) { return ++calls < 3; });
  time.run_until(seconds(20));
  CHECK(calls == 3);
}

TEST_CASE("a pause ends when it is told to stop") {
  SimulatedTime time;
  SimulatedClock clock(time, {});
  std::stop_source stop;
  std::atomic<bool> went_on{true};
  std::jthread waiter([&] { went_on = pause(clock, seconds(1'000'000), stop.get_token()); });
  time.run_until(seconds(5));
  stop.request_stop();
  waiter.join();
  CHECK_FALSE(went_on);
  CHECK_FALSE(pause(clock, seconds(1), stop.get_token()));
}

}  // namespace
}  // namespace lccfs
