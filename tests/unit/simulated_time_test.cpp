// SPDX-License-Identifier: LGPL-2.1-or-later
// The time of tests in which threads wait.
#include "support/simulated_time.h"

#include <atomic>
#include <string>
#include <thread>

#include "scripted/scripted_store.h"
#include "support/catch.h"

namespace lccfs::test {
namespace {

using std::chrono::seconds;

TEST_CASE("time moves on when all threads sleep, from one event to the next") {
  SimulatedTime time;
  SimulatedClock early(time, {});
  SimulatedClock late(time, {.ahead = seconds(1000)});
  std::mutex mutex;
  std::vector<std::string> seen;
  const auto note = [&](const std::string& who) {
    const std::lock_guard lock(mutex);
    seen.push_back(who + " " + std::to_string(time.now() / seconds(1)));
  };
  std::jthread a([&] {
    for (int i = 0; i < 3; ++i) {
      early.sleep_for(seconds(20));
      note("a");
    }
  });
  std::jthread b([&] {
    late.sleep_for(seconds(30));
    note("b");
  });
  time.at(seconds(45), [&] { note("event"); });
  const auto enough = [&] {
    const std::lock_guard lock(mutex);
    return seen.size() == 9;
  };
  CHECK(!time.run_until(enough, seconds(100)));
  a.join();
  b.join();
  CHECK(seen == std::vector<std::string>{"a 20", "b 30", "a 40", "event 45", "a 60"});
  CHECK(early.elapsed() == seconds(100));
  CHECK(late.elapsed() == seconds(1100));
}

void work() {
  std::atomic<unsigned> done = 0;
  while (done.fetch_add(1) < 2'000'000) continue;
}

TEST_CASE("time stands still while a thread works") {
  SimulatedTime time;
  SimulatedClock clock(time, {});
  std::vector<std::chrono::nanoseconds> moments;
  std::jthread worker([&] {
    work();
    moments.push_back(clock.elapsed());
    clock.sleep_for(seconds(1));
    work();
    moments.push_back(clock.elapsed());
  });
  time.run_until(seconds(60));
  worker.join();
  CHECK(moments == std::vector<std::chrono::nanoseconds>{seconds(0), seconds(1)});
}

TEST_CASE("who stands still sleeps on, and learns the time when it continues") {
  SimulatedTime time;
  SimulatedClock clock(time, {});
  std::chrono::nanoseconds woken{0};
  std::jthread sleeper([&] {
    clock.sleep_for(seconds(10));
    woken = clock.elapsed();
  });
  time.at(seconds(5), [&] { clock.stop(); });
  time.at(seconds(70), [&] { clock.resume(); });
  time.run_until(seconds(100));
  sleeper.join();
  CHECK(woken == seconds(70));
}

TEST_CASE("wall clocks are anything, and may run backwards") {
  SimulatedTime time;
  const SimulatedClock clock(time, {.wall_seconds = 5000, .wall_rate = -2});
  time.run_until(seconds(100));
  CHECK(clock.wall_time().seconds == 4800);
}

TEST_CASE("a wait that ends in time takes no longer") {
  SimulatedTime time;
  SimulatedClock clock(time, {});
  const bool in_time = GENERATE(false, true);
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false, answer = false;
  std::chrono::nanoseconds woken{0};
  std::jthread waiter([&] {
    std::unique_lock lock(mutex);
    answer = clock.wait_for(changed, lock, seconds(10), [&] { return done; });
    woken = clock.elapsed();
  });
  time.at(seconds(in_time ? 3 : 30), [&] {
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  });
  time.run_until(seconds(60));
  waiter.join();
  CHECK(answer == in_time);
  CHECK(woken == seconds(in_time ? 3 : 10));
}

struct Mute final : WatchHandler {
  std::vector<std::move_only_function<void(Bytes)>> kept;
  void on_notify(Bytes, std::move_only_function<void(Bytes)> answer) override { kept.push_back(std::move(answer)); }
  void on_lost(Error) override {}
};

TEST_CASE("a notify whose watcher is silent, deaf or cut off takes its time-out") {
  SimulatedTime time;
  SimulatedClock clock(time, {});
  ScriptedCluster::Options options;
  options.clock = &clock;
  const auto cluster = ScriptedCluster::make(options);
  const auto a = cluster->new_client();
  const auto b = cluster->new_client();
  REQUIRE(a->apply({"Super", "make", {}, {mutation::CreateExclusive{}}}).has_value());
  const auto watch = a->watch("Super", std::make_shared<Mute>());
  SECTION("silent") {}
  SECTION("deaf") { a->set_deaf(true); }
  SECTION("cut off") { a->set_cut_off(true); }
  unsigned silent = 0;
  std::chrono::nanoseconds answered{0};
  std::jthread asker([&] {
    silent = b->notify("Super", "?", seconds(10)).value().silent;
    answered = time.now();
  });
  time.run_until(seconds(60));
  asker.join();
  CHECK(silent == 1);
  CHECK(answered == seconds(10));
}

}  // namespace
}  // namespace lccfs::test
