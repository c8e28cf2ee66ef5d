// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The collector cut, repeated and raced (docs/PROTOCOL.md section 7): beside an operation at each of its steps, itself
// at each of its own, and two of them at once. Whatever happens, the tree is what the operations have made of it, and
// in the end nothing is left.
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "crash/sampling.h"
#include "crash/scenario.h"
#include "crash/world.h"
#include "format/object_names.h"
#include "support/catch.h"
#include "support/collecting.h"
#include "support/hooks.h"

namespace lccfs::crash {
namespace {

using test::NthMutation;
using test::TestCollector;

struct CaseCounter {
  unsigned crashes = 0, repeats = 0, races = 0, lapses = 0;
  ~CaseCounter() {
    std::printf(
        "collector cases: %u crashes, %u repeats and lost answers, %u races, %u lapses of watches and late answers\n",
        crashes, repeats, races, lapses);
  }
} cases;

/// What a scenario's operation leaves for the collector: its client has ended, or died at some step.
struct Leftovers {
  explicit Leftovers(const Scenario& of_scenario) : scenario(of_scenario), base(scenario) {}

  /// nullptr: the operation has no n-th change.
  std::unique_ptr<World> after_crash(unsigned n) const {
    auto made = std::make_unique<World>(base);
    World& world = *made;
    Client a = world.mount();
    a.prepare(scenario, Memory::cold);
    const NthMutation hook(n, {Fault::Kind::applied_and_crash});
    a.store().set_hook(hook);
    a.perform(scenario.operation);
    a.bury();
    return hook.reached() ? std::move(made) : nullptr;
  }
  std::unique_ptr<World> after_end() const {
    auto made = std::make_unique<World>(base);
    World& world = *made;
    Client a = world.mount();
    a.prepare(scenario, Memory::cold);
    a.perform(scenario.operation);
    a.unmount();
    return made;
  }

  const Scenario& scenario;
  const World base;
};

/// A look for an inode, or the removal of a data object, that is not there: a dead client's range of numbers has hundreds.
bool finds_nothing(World& world, const StepInfo& info) {
  if (info.kind != StepKind::query && info.kind != StepKind::remove) return false;
  bool found = false;
  world.cluster().with_objects([&](scripted::Objects& objects) {
    found =
        info.kind == StepKind::query ? objects.metadata().contains(info.object) : objects.data().contains(info.object);
  });
  return !found;
}

/// The fault is in the n-th step that changes something, or is the first that might have.
class NthChange {
 public:
  NthChange(World& world, unsigned n, Fault fault) : world_(world), nth_(n, fault) {}
  ScriptedClient::Hook hook() {
    return [this](const StepInfo& info) {
      const bool is_one_of_many = info.kind == StepKind::remove && finds_nothing(world_, info) && in_vain_++ != 0;
      return is_one_of_many ? Fault{} : nth_(info);
    };
  }
  bool reached() const { return nth_.reached(); }

 private:
  World& world_;
  const NthMutation nth_;
  unsigned in_vain_ = 0;
};

/// Acts once, before the n-th step that finds something.
class ActBefore {
 public:
  ActBefore(World& world, unsigned n, std::function<void()> act) : world_(world), n_(n), act_(std::move(act)) {}
  ScriptedClient::Hook hook() {
    return [this](const StepInfo& info) {
      if (!finds_nothing(world_, info) && seen_++ == n_) act_();
      return Fault{};
    };
  }
  bool acted() const { return seen_ > n_; }

 private:
  World& world_;
  const unsigned n_;
  const std::function<void()> act_;
  unsigned seen_ = 0;
};

/// A world that some scenario leaves, and what to say about it.
struct Left {
  std::string name;
  std::unique_ptr<World> world;
};

/// Of the worlds that all scenarios leave, those of such numbers; and how many there are.
std::pair<std::vector<Left>, std::size_t> leftovers_of(const std::function<bool(std::size_t)>& is_chosen) {
  std::vector<Left> chosen;
  std::size_t number = 0;
  for (const Scenario& scenario : all_scenarios()) {
    const Leftovers leftovers(scenario);
    if (is_chosen(number++)) chosen.push_back({scenario.name + ", ended", leftovers.after_end()});
    for (unsigned n = 0;; ++n) {
      auto world = leftovers.after_crash(n);
      if (!world) break;
      if (is_chosen(number++))
        chosen.push_back({scenario.name + ", crashed after change " + std::to_string(n), std::move(world)});
    }
  }
  return {std::move(chosen), number};
}

/// Each run sees many operations cut, not all cuts of one.
const std::vector<Left>& drawn_leftovers() {
  static const std::vector<Left> drawn = [] {
    auto [chosen, number] = leftovers_of(is_drawn);
    if (!chosen.empty()) return std::move(chosen);
    return leftovers_of([one = one_drawn_of(number)](std::size_t n) { return n == one; }).first;
  }();
  return drawn;
}

void for_each_leftovers(const std::function<void(const World&)>& act) {
  for (const auto& [name, world] : drawn_leftovers()) {
    INFO(name);
    act(*world);
  }
}

TEST_CASE("a collector that dies at any step leaves what the next one finishes") {
  for_each_leftovers([](const World& left) {
    for (const auto kind :
         {Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash, Fault::Kind::crash_and_land_later}) {
      for (unsigned n = 0;; ++n) {
        INFO(lccfs::describe(kind) << ", the collector's change " << n);
        World world(left);
        world.let_a_minute_pass();
        const Tree tree = world.tree();
        TestCollector collector(world.cluster(), world.clock());
        NthChange change(world, n, {kind});
        collector.client().set_hook(change.hook());
        static_cast<void>(collector.try_pass());
        if (!change.reached()) break;
        if (!collector.client().crashed()) continue;  // a fence does not land later
        ++cases.crashes;
        CHECK(text_of(world.tree()) == text_of(tree));
        TestCollector other(world.cluster(), world.clock());
        other.pass();
        collector.client().land_late_steps();
        CHECK(text_of(world.tree()) == text_of(tree));
        other.end();
        world.expect_nothing_left();
      }
    }
  });
}

TEST_CASE("a collector whose step is run twice, or whose answer is lost, does the same") {
  for_each_leftovers([](const World& left) {
    for (const auto kind :
         {Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied}) {
      for (unsigned n = 0;; ++n) {
        INFO(lccfs::describe(kind) << ", the collector's change " << n);
        World world(left);
        world.let_a_minute_pass();
        const Tree tree = world.tree();
        TestCollector collector(world.cluster(), world.clock());
        NthChange change(world, n, {kind});
        collector.client().set_hook(change.hook());
        const auto pass = collector.try_pass();
        // Steps on inodes are repeated until their answer is known; those on data objects are left to the next pass.
        if (!pass && pass.error().code == ErrorCode::timed_out && pass.error().context.contains("remove Data.")) {
          collector.pass();
        } else {
          test::need(pass);
        }
        if (!change.reached()) break;
        ++cases.repeats;
        collector.end();
        CHECK(text_of(world.tree()) == text_of(tree));
        world.expect_nothing_left();
      }
    }
  });
}

TEST_CASE("two collectors, one of which does all its work at any step of the other's, do no harm") {
  for_each_leftovers([](const World& left) {
    for (unsigned n = 0;; ++n) {
      INFO("the other acts before step " << n);
      World world(left);
      world.let_a_minute_pass();
      const Tree tree = world.tree();
      TestCollector collector(world.cluster(), world.clock());
      TestCollector other(world.cluster(), world.clock());
      ActBefore other_acts(world, n, [&] { other.pass(); });
      collector.client().set_hook(other_acts.hook());
      collector.pass();
      collector.client().set_hook(nullptr);
      if (!other_acts.acted()) break;
      ++cases.races;
      collector.end();
      other.end();
      CHECK(text_of(world.tree()) == text_of(tree));
      world.expect_nothing_left();
    }
  });
}

/// A scenario's operation and rival, and what comes of them in either order.
struct Expected {
  explicit Expected(const Scenario& of_scenario) : scenario(of_scenario), base(scenario) {
    for (const bool operation_first : {true, false}) {
      World world(base);
      Client a = world.mount();
      Client b = world.mount();
      a.prepare(scenario, Memory::cold);
      Outcome outcome;
      if (operation_first) outcome.operation = a.perform(scenario.operation);
      outcome.rival = b.perform(scenario.rival);
      if (!operation_first) outcome.operation = a.perform(scenario.operation);
      a.unmount();
      b.unmount();
      outcome.tree = world.tree();
      (operation_first ? in_order : reversed) = outcome;
    }
    World world(base);
    Client a = world.mount();
    a.prepare(scenario, Memory::cold);
    alone.operation = a.perform(scenario.operation);
    a.unmount();
    alone.tree = world.tree();
  }

  const Scenario& scenario;
  const World base;
  Outcome alone, in_order, reversed;
};

TEST_CASE("a collector that works at any step of an operation does not touch what that operation does") {
  for (const Scenario* scenario : drawn_scenarios()) {
    const Expected expected(*scenario);
    for (const Memory memory : all_memories) {
      for (unsigned n = 0;; ++n) {
        INFO(scenario->name << describe(memory) << ": the collector acts before step " << n);
        World world(expected.base);
        Client a = world.mount(memory);
        a.prepare(*scenario, memory);
        TestCollector collector(world.cluster(), world.clock());
        ActBefore collector_acts(world, n, [&] { collector.pass(); });
        a.store().set_hook(collector_acts.hook());
        Outcome outcome{a.perform(scenario->operation), {}, {}};
        a.store().set_hook(nullptr);
        if (!collector_acts.acted()) break;
        ++cases.races;
        a.unmount();
        collector.end();
        outcome.tree = world.tree();
        CHECK(text_of(outcome) == text_of(expected.alone));
        world.expect_nothing_left();
      }
    }
  }
}

TEST_CASE("an operation that falls into any step of a collector's work on what another has left comes out whole") {
  for (const Scenario* scenario : drawn_scenarios()) {
    if (scenario->rival_does_two) continue;
    const Expected expected(*scenario);
    for (unsigned n = 0;; ++n) {
      INFO(scenario->name << ": the rival acts before the collector's step " << n);
      World world(expected.base);
      Client a = world.mount();
      Client b = world.mount();
      a.prepare(*scenario, Memory::cold);
      Outcome outcome{a.perform(scenario->operation), {}, {}};
      TestCollector collector(world.cluster(), world.clock());
      ActBefore rival_acts(world, n, [&] { outcome.rival = b.perform(scenario->rival); });
      collector.client().set_hook(rival_acts.hook());
      collector.pass();
      collector.client().set_hook(nullptr);
      if (!rival_acts.acted()) break;
      ++cases.races;
      a.unmount();
      b.unmount();
      collector.end();
      outcome.tree = world.tree();
      CHECK(text_of(outcome) == text_of(expected.in_order));
      world.expect_nothing_left();
    }
  }
}

/// The watches of some clients lapse. They hear of it, and set them again, when told to, at the latest half a minute
/// later by the clock of whoever waits: it is to be that one's.
class Lapse final : public Clock {
 public:
  explicit Lapse(World& world) : world_(world), looker_(world.cluster().new_client()) {}

  void begin(std::vector<ScriptedClient*> clients) {
    clients_ = std::move(clients);
    for (ScriptedClient* client : clients_) {
      tell_.push_back(client->lapse_watches([](const std::string&) { return true; }));
    }
    until_ = elapsed() + heard_within;
  }
  /// Time stands still until they are set.
  void end() {
    for (const auto& tell : std::exchange(tell_, {})) tell();
    for (ScriptedClient* client : std::exchange(clients_, {})) {
      while (test::need(looker_->presence(format::super_object, client->identity())) != Presence::watching) {
        std::this_thread::yield();
      }
    }
  }

  std::chrono::nanoseconds elapsed() const override { return world_.clock().elapsed(); }
  TimeSpec wall_time() const override { return world_.clock().wall_time(); }
  void sleep_for(std::chrono::nanoseconds duration) override {
    world_.clock().sleep_for(duration);
    if (std::this_thread::get_id() == thread_ && elapsed() >= until_) end();
  }
  /// Steps of the threads that set watches again are not part of the work under way.
  bool is_of_this_thread() const { return std::this_thread::get_id() == thread_; }

 private:
  static constexpr std::chrono::seconds heard_within{30};
  World& world_;
  const std::shared_ptr<ScriptedClient> looker_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::chrono::nanoseconds until_{0};
  std::vector<ScriptedClient*> clients_;
  std::vector<std::function<void()>> tell_;
};

/// Nobody is fenced, nor is anything taken from a client that is there. What the collector leaves meanwhile, as
/// somebody was silent or an answer too late to count, the next one finishes.
TEST_CASE("watches that lapse at any step of a collector's, after a late answer, cost nobody anything") {
  constexpr unsigned steps_of_a_lapse = 3;
  constexpr std::chrono::seconds late{45};
  for (const Scenario* scenario : drawn_scenarios()) {
    const Expected expected(*scenario);
    for (unsigned n = 0;; ++n) {
      INFO(scenario->name << ": watches lapse before the collector's step " << n);
      World world(expected.base);
      Client a = world.mount();
      a.prepare(*scenario, Memory::cold);
      Outcome outcome{a.perform(scenario->operation), {}, {}};
      Lapse lapse(world);
      TestCollector collector(world.cluster(), lapse);
      ActBefore begins(world, n, [&] {
        world.clock().sleep_for(late);
        lapse.begin({&a.store(), &collector.client()});
      });
      ActBefore ends(world, n + steps_of_a_lapse, [&] { lapse.end(); });
      collector.client().set_hook([&lapse, begin = begins.hook(), end = ends.hook()](const StepInfo& info) {
        if (!lapse.is_of_this_thread()) return Fault{};
        begin(info);
        return end(info);
      });
      collector.pass();
      collector.client().set_hook(nullptr);
      if (!begins.acted()) break;
      ++cases.lapses;
      lapse.end();
      a.unmount();
      collector.end();
      outcome.tree = world.tree();
      CHECK(text_of(outcome) == text_of(expected.alone));
      world.expect_nothing_left();
    }
  }
}

/// The operation's n-th change is applied and its answer held back; the rival and the collector act; then the store
/// runs it again, and answers.
TEST_CASE("a step that is run again after a collector has worked is refused, and its first answer stands") {
  for (const Scenario* scenario : drawn_scenarios()) {
    const Expected expected(*scenario);
    for (unsigned n = 0;; ++n) {
      INFO(scenario->name << ": change " << n << " is run again after the rival and the collector");
      World world(expected.base);
      const NthMutation hook(n, {Fault::Kind::run_again_later});
      std::mutex mutex;
      bool is_over = false;
      Client a = world.mount();
      Client b = world.mount();
      a.prepare(*scenario, Memory::cold);
      TestCollector collector(world.cluster(), world.clock());
      a.store().set_hook([&](const StepInfo& info) {
        const std::lock_guard lock(mutex);
        return is_over ? Fault{} : hook(info);
      });
      auto result = std::async(std::launch::async, [&] { return a.perform(scenario->operation); });
      const auto done = [&] { return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready; };
      while (a.store().held().empty() && !done()) std::this_thread::yield();
      Outcome outcome{{}, b.perform(scenario->rival), {}};
      collector.pass();
      const bool was_held = !a.store().held().empty();
      a.store().release_all();
      outcome.operation = result.get();
      {
        const std::lock_guard lock(mutex);
        is_over = true;
      }
      if (!hook.reached()) break;
      if (!was_held && a.store().wait_for_held(1)) a.store().release_all();  // a step after the operation's answer
      ++cases.repeats;
      a.unmount();
      b.unmount();
      collector.end();
      outcome.tree = world.tree();
      INFO("got:\n"
           << text_of(outcome) << "in order:\n"
           << text_of(expected.in_order) << "reversed:\n"
           << text_of(expected.reversed));
      CHECK((outcome == expected.in_order || outcome == expected.reversed));
      world.expect_nothing_left();
    }
  }
}

}  // namespace
}  // namespace lccfs::crash
