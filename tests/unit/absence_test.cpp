// SPDX-License-Identifier: LGPL-2.1-or-later
// When others count as gone: by what one has seen oneself, without a break (docs/PROTOCOL.md section 2).
#include <atomic>
#include <thread>

#include "support/catch.h"
#include "support/instances.h"
#include "support/simulated_time.h"

namespace lccfs {
namespace {

using std::chrono::seconds;
using test::InstanceVolume;
using test::need;
using test::Running;
using test::time_until_over;

constexpr InstanceId somebody{7};

/// Looks that take no time, from one moment to another, each so long after the one before. Whether the last shows that
/// it is gone.
bool look_from_to(Absences& absences, seconds from, seconds to, seconds pause) {
  bool gone = false;
  for (auto now = from; now <= to; now += pause) gone = absences.absent(somebody, now, now);
  return gone;
}

TEST_CASE("gone is who was absent in every look of a minute") {
  Absences absences;
  const seconds pause(GENERATE(1, 5, 10));
  CHECK_FALSE(look_from_to(absences, seconds(0), seconds(59), pause));
  CHECK(look_from_to(absences, seconds(60), seconds(60), pause));
}

TEST_CASE("who was seen in between, or not looked for, is looked for from the beginning") {
  Absences absences;
  look_from_to(absences, seconds(0), seconds(59), seconds(1));
  seconds looked_again_at(60);
  SECTION("seen") { absences.forget(somebody); }
  SECTION("the observer has lost its own watch") { absences.begin_anew(); }
  SECTION("the observer was stopped between two looks") { looked_again_at = seconds(70); }
  SECTION("the observer, or the store, was away during a look") {
    CHECK_FALSE(absences.absent(somebody, seconds(60), seconds(71)));
    looked_again_at = seconds(71);
  }
  CHECK_FALSE(look_from_to(absences, looked_again_at, looked_again_at + seconds(59), seconds(1)));
  CHECK(absences.absent(somebody, looked_again_at + seconds(60), looked_again_at + seconds(60)));
}

TEST_CASE("two looks are no minute, however far apart") {
  Absences absences;
  CHECK_FALSE(absences.absent(somebody, seconds(0), seconds(0)));
  CHECK_FALSE(absences.absent(somebody, seconds(61), seconds(61)));
  CHECK_FALSE(absences.absent(somebody, std::chrono::hours(1), std::chrono::hours(1)));
}

class Mounts {
 public:
  explicit Mounts(InstanceVolume& volume, unsigned count) : volume_(volume) {
    while (mounts_.size() < count) mounts_.push_back(volume.start());
  }
  Running& operator[](std::size_t number) { return mounts_[number]; }

  /// Each needs something of all others, all the time.
  void look_for(seconds duration) {
    for (const auto until = volume_.clock.elapsed() + duration; volume_.clock.elapsed() < until;) {
      for (const auto& one : mounts_) {
        for (const auto& other : mounts_) {
          if (&one != &other && !one.client->crashed()) need(one->look_at(other->id()));
        }
      }
      volume_.clock.advance(seconds(1));
    }
  }
  /// Of all of them, and nobody is told.
  void lose_watches() {
    for (const auto& one : mounts_) {
      one.client->set_deaf(true);
      one.client->lose_watches();
    }
  }
  void watch_again() {
    for (const auto& one : mounts_) {
      watches_.push_back(need(one.client->watch(format::super_object, std::make_shared<test::DeafHandler>())));
    }
  }
  unsigned fenced() {
    unsigned count = 0;
    for (const auto& one : mounts_) {
      const auto record = volume_.record_of(one->id());
      if (!record || record->state != format::InstanceRecord::State::live) ++count;
    }
    return count;
  }

 private:
  InstanceVolume& volume_;
  std::vector<Running> mounts_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

TEST_CASE("an outage of any length in which all watches lapse fences nobody who is back within a minute") {
  for (seconds outage{0}; outage <= seconds(200); outage += seconds(20)) {
    for (const seconds back_after : {seconds(1), seconds(58)}) {
      INFO("away for " << outage.count() << " s, watching again after " << back_after.count() << " s");
      InstanceVolume volume;
      Mounts mounts(volume, 8);
      mounts.look_for(seconds(3));
      mounts.lose_watches();
      volume.clock.advance(outage);
      mounts.look_for(back_after);
      mounts.watch_again();
      mounts.look_for(seconds(5));
      CHECK(mounts.fenced() == 0);
    }
  }
}

TEST_CASE("a client that is cut off is fenced a minute after its watches have lapsed, and not before") {
  InstanceVolume volume;
  Mounts mounts(volume, 8);
  mounts.look_for(seconds(3));
  mounts[0].client->crash();
  mounts.look_for(seconds(60));
  CHECK(mounts.fenced() == 0);
  mounts.look_for(seconds(2));
  CHECK(mounts.fenced() == 1);
}

TEST_CASE("an observer that has lost a watch of its own begins its looks anew") {
  InstanceVolume volume;
  const Running observer = volume.start();
  const Running victim = volume.start();
  victim.client->crash();
  CHECK_FALSE(need(observer->ensure_expired(victim->id())));
  for (int second = 0; second < 58; ++second) {
    volume.clock.advance(seconds(1));
    CHECK_FALSE(need(observer->ensure_expired(victim->id())));
  }
  observer.client->lose_watches();
  CHECK(time_until_over(*observer.instance, victim->id()) >= gone_after);
}

/// Lets something happen at a moment within a sleep.
class EventClock final : public Clock {
 public:
  explicit EventClock(test::FakeClock& clock) : clock_(clock) {}
  void at(std::chrono::nanoseconds when, std::function<void()> act) { events_.emplace(when, std::move(act)); }
  std::chrono::nanoseconds elapsed() const override { return clock_.elapsed(); }
  TimeSpec wall_time() const override { return clock_.wall_time(); }
  void sleep_for(std::chrono::nanoseconds duration) override {
    clock_.advance(duration);
    while (!events_.empty() && events_.begin()->first <= clock_.elapsed()) {
      const auto act = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      act();
    }
  }

 private:
  test::FakeClock& clock_;
  std::multimap<std::chrono::nanoseconds, std::function<void()>> events_;
};

struct Poller {
  explicit Poller(InstanceVolume& volume)
      : clock(volume.clock), client(volume.cluster->new_client()), instance(need(Instance::start(client, clock, {}))) {}
  Member::Standing standing_of(const Running& whom) {
    for (const auto& member : need(instance->poll_liveness({}, stop.get_token())).members) {
      if (member.id == whom->id()) return member.standing;
    }
    FAIL("not in the poll");
    return {};
  }
  EventClock clock;
  std::shared_ptr<ScriptedClient> client;
  std::unique_ptr<Instance> instance;
  std::stop_source stop;
};

TEST_CASE("a liveness poll looks for a minute at who is silent and does not watch, at all of them together") {
  InstanceVolume volume;
  Poller poller(volume);
  const Running one = volume.start(), other = volume.start();
  one.client->crash();
  other.client->crash();
  const auto began = volume.clock.elapsed();
  CHECK(poller.standing_of(one) == Member::Standing::expired);
  CHECK(poller.standing_of(other) == Member::Standing::expired);
  CHECK(volume.clock.elapsed() - began >= gone_after);
  CHECK(volume.clock.elapsed() - began <= gone_after + seconds(5));
}

TEST_CASE("a liveness poll does not wait for who watches, and fences nobody who watches again in time") {
  InstanceVolume volume;
  Poller poller(volume);
  const Running one = volume.start();
  one.client->set_deaf(true);
  std::unique_ptr<Watch> again;
  seconds longest(0);
  SECTION("watches all the time") {}
  SECTION("watches again before the minute is over") {
    one.client->lose_watches();
    longest = seconds(60);
    poller.clock.at(volume.clock.elapsed() + seconds(58), [&] {
      again = need(one.client->watch(format::session_object(one->id()), std::make_shared<test::DeafHandler>()));
    });
  }
  const auto began = volume.clock.elapsed();
  CHECK(poller.standing_of(one) == Member::Standing::silent);
  CHECK(volume.clock.elapsed() - began <= longest);
  CHECK(volume.record_of(one->id())->state == format::InstanceRecord::State::live);
}

TEST_CASE("who cannot be looked for, as an object does not answer, is never gone") {
  InstanceVolume volume;
  Poller poller(volume);
  const Running one = volume.start();
  one.client->crash();
  volume.cluster->set_away(
      [session = format::session_object(one->id())](const std::string& object) { return object == session; });
  for (unsigned poll = 0; poll < 3; ++poll) CHECK(poller.standing_of(one) == Member::Standing::silent);
  CHECK(need(poller.instance->look_at(one->id())) == Instance::Seen::absent);
  volume.cluster->set_away(nullptr);
  CHECK(poller.standing_of(one) == Member::Standing::expired);
}

/// A record of a client that watches nothing.
void add_gone(InstanceVolume& volume, InstanceId id) {
  const auto client = volume.cluster->new_client();
  format::InstanceRecord record;
  record.since = volume.clock.wall_time();
  record.identity = client->identity();
  need(client->apply(txn::add_instance_record(id, encode(record))));
  need(client->apply(txn::make_session(id)));
}

TEST_CASE("a liveness poll fences all who have died at once, though each fence takes its time") {
  constexpr unsigned dead = 100;
  InstanceVolume volume;
  for (unsigned i = 0; i < dead; ++i) add_gone(volume, InstanceId{1000 + i});
  test::SimulatedTime time;
  test::SimulatedClock clock(time, {});
  const auto client = volume.cluster->new_client();
  const auto poller = need(Instance::start(client, clock, {}));
  client->set_hook([&clock](const StepInfo& info) {
    if (info.step == "fence") clock.sleep_for(seconds(2));
    return Fault{};
  });
  std::atomic<bool> ended = false;
  std::optional<PollResult> poll;
  const std::jthread collector([&] {
    poll = need(poller->poll_liveness({}, {}));
    ended = true;
  });
  REQUIRE(time.run_until([&ended] { return ended.load(); }, seconds(300)));
  CHECK(std::ranges::count(poll->members, true, &Member::fenced_now) == dead);
  for (unsigned i = 0; i < dead; ++i)
    CHECK(volume.record_of(InstanceId{1000 + i})->state == format::InstanceRecord::State::fenced);
  CHECK(time.now() <= gone_after + seconds(40));
}

TEST_CASE("a liveness poll that is told to stop waits for nobody") {
  InstanceVolume volume;
  Poller poller(volume);
  const Running one = volume.start();
  one.client->crash();
  const auto began = volume.clock.elapsed();
  poller.clock.at(began + seconds(5), [&] { poller.stop.request_stop(); });
  CHECK(poller.standing_of(one) == Member::Standing::silent);
  CHECK(volume.clock.elapsed() - began <= seconds(6));
}

TEST_CASE("a liveness poll does not wait for who has ended since its record was read") {
  InstanceVolume volume;
  Poller poller(volume);
  const Running one = volume.start();
  poller.client->set_hook(test::before("notify", [&] { need(one->end()); }));
  const auto began = volume.clock.elapsed();
  CHECK(poller.standing_of(one) == Member::Standing::expired);
  CHECK(volume.clock.elapsed() == began);
}

TEST_CASE("who was found gone is not fenced on that ground when it can be fenced only later") {
  InstanceVolume volume;
  const Running observer = volume.start();
  const Running one = volume.start();
  one.client->crash();
  unsigned queries = 0;
  auto longer = seconds(30);
  observer.client->set_hook([&](const StepInfo& info) {
    const bool is_in_between = info.kind == StepKind::query && ++queries == 2;  // the look has read the record before
    if (is_in_between) volume.clock.advance(longer);
    return Fault{};
  });
  const auto looks_for = [&](seconds duration) {
    for (const auto until = volume.clock.elapsed() + duration; volume.clock.elapsed() < until;) {
      queries = 0;
      CHECK(need(observer->look_at(one->id())) == Instance::Seen::absent);
      volume.clock.advance(seconds(1));
    }
  };
  looks_for(seconds(61) + longer);
  CHECK(volume.record_of(one->id())->state == format::InstanceRecord::State::live);
  longer = seconds(0);
  looks_for(seconds(58));
  CHECK(test::time_until_over(*observer.instance, one->id()) <= seconds(5));
  CHECK(volume.record_of(one->id())->state == format::InstanceRecord::State::fenced);
}

TEST_CASE("who was absent and watches again when it is about to be fenced is not fenced") {
  InstanceVolume volume;
  const Running observer = volume.start();
  const Running one = volume.start();
  one.client->set_deaf(true);
  one.client->lose_watches();
  std::unique_ptr<Watch> again;
  unsigned queries = 0;
  observer.client->set_hook([&](const StepInfo& info) {
    const bool is_in_between = info.kind == StepKind::query && ++queries == 2;  // the look has read the record before
    if (is_in_between) again = need(one.client->watch(format::super_object, std::make_shared<test::DeafHandler>()));
    return Fault{};
  });
  for (int second = 0; second < 100 && !again; ++second) {
    queries = 0;
    CHECK(need(observer->look_at(one->id())) == Instance::Seen::absent);
    volume.clock.advance(seconds(1));
  }
  REQUIRE(again);
  CHECK(observer.client->counts().fences == 0);
  again = nullptr;
  observer.client->set_hook(nullptr);
  CHECK(time_until_over(*observer.instance, one->id()) >= gone_after);  // what was seen before counts no more
}

TEST_CASE("who is proven dead is fenced at once") {
  InstanceVolume volume({.dead_clients_watch = true, .deaths_are_seen = true});
  Poller poller(volume);
  const Running one = volume.start();
  one.client->crash();
  const auto began = volume.clock.elapsed();
  SECTION("by a liveness poll") { CHECK(poller.standing_of(one) == Member::Standing::expired); }
  SECTION("by who waits for it") { CHECK(need(poller.instance->ensure_expired(one->id()))); }
  CHECK(volume.clock.elapsed() == began);
  CHECK(volume.record_of(one->id())->state == format::InstanceRecord::State::fenced);
}

}  // namespace
}  // namespace lccfs
