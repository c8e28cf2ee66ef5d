// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Every cut by hand (docs/PROTOCOL.md section 7): each scenario's operation meets each fault at each of its steps,
// with and without a memory of what it looked at before. What comes out must be what some order of whole operations
// gives.
#include <algorithm>
#include <cstdio>
#include <future>
#include <iterator>
#include <memory>
#include <thread>

#include "crash/sampling.h"
#include "crash/scenario.h"
#include "crash/world.h"
#include "support/catch.h"
#include "support/hooks.h"

namespace lccfs::crash {
namespace {

using test::NthMutation;

constexpr const char* dead = "(dead)";
constexpr const char* not_done = "(not done)";

/// Printed at the end, so that a suite that shrinks is seen.
struct CaseCounter {
  unsigned crashes = 0, repeats = 0, races = 0;
  ~CaseCounter() { std::printf("cases: %u crashes, %u repeats and lost answers, %u races\n", crashes, repeats, races); }
} cases;

/// A scenario, and what it gives when nothing goes wrong.
struct Expectation {
  Expectation(const Scenario& of_scenario, Memory of_memory)
      : scenario(of_scenario), memory(of_memory), base(scenario), before(World(base).tree()) {
    alone = serial(true, false, false);
    operation_then_rival = serial(true, true, false);
    rival_then_operation = serial(false, true, true);
    rival_only = serial(false, true, false);
  }

  Outcome serial(bool operation_first, bool with_rival, bool operation_last) const {
    World world(base);
    Outcome outcome{not_done, not_done, {}};
    Client a = world.mount();
    Client b = world.mount();
    if (operation_first) {
      a.prepare(scenario, Memory::cold);
      outcome.operation = a.perform(scenario.operation);
    }
    if (with_rival) outcome.rival = b.perform(scenario.rival);
    if (operation_last) {
      a.prepare(scenario, Memory::cold);
      outcome.operation = a.perform(scenario.operation);
    }
    a.unmount();
    b.unmount();
    outcome.tree = world.tree();
    return outcome;
  }

  const Scenario& scenario;
  const Memory memory;
  const World base;
  const Tree before;
  Outcome alone, operation_then_rival, rival_then_operation, rival_only;
};

void expect_one_of(const Outcome& outcome, const std::vector<Outcome>& allowed) {
  std::string expected;
  for (const Outcome& one : allowed) expected += text_of(one);
  INFO("got:\n" << text_of(outcome) << "expected one of:\n" << expected);
  CHECK(std::ranges::count(allowed, outcome) > 0);
}

Outcome without_result(Outcome outcome) {
  outcome.operation = dead;
  return outcome;
}

enum class Landing { never, before_anybody_looks, before_the_rival, after_the_rival };
const char* describe(Landing landing) {
  switch (landing) {
    case Landing::never:
      return "";
    case Landing::before_anybody_looks:
      return " before anybody looks";
    case Landing::before_the_rival:
      return " before the rival";
    case Landing::after_the_rival:
      return " after the rival";
  }
  return "?";
}

/// The operation's client dies at its n-th change. false: it has no so many.
bool cut(const Expectation& expected, unsigned n, Fault::Kind kind, Landing landing) {
  INFO(expected.scenario.name << describe(expected.memory) << ": " << lccfs::describe(kind) << describe(landing)
                              << ", change " << n);
  World world(expected.base);
  Client a = world.mount(expected.memory);
  a.prepare(expected.scenario, expected.memory);
  const NthMutation hook(n, {kind});
  a.store().set_hook(hook);
  a.perform(expected.scenario.operation);
  a.bury();
  if (!hook.reached()) return false;
  ++cases.crashes;

  auto land_at = [&](Landing moment) {
    if (landing == moment) a.store().land_late_steps();
  };
  auto expect_before_or_after = [&] {
    const Tree tree = world.tree();
    INFO("got:\n"
         << text_of(tree) << "before:\n"
         << text_of(expected.before) << "after:\n"
         << text_of(expected.alone.tree));
    CHECK((tree == expected.before || tree == expected.alone.tree));
  };
  land_at(Landing::before_anybody_looks);
  expect_before_or_after();
  world.let_a_minute_pass();
  land_at(Landing::before_the_rival);
  expect_before_or_after();

  Client b = world.mount(expected.memory);
  Outcome outcome{dead, b.perform(expected.scenario.rival), {}};
  b.unmount();
  land_at(Landing::after_the_rival);
  outcome.tree = world.tree();
  std::vector<Outcome> allowed{without_result(expected.rival_only), without_result(expected.operation_then_rival)};
  if (landing == Landing::after_the_rival) allowed.push_back(without_result(expected.rival_then_operation));
  expect_one_of(outcome, allowed);
  world.expect_nothing_left();
  return true;
}

/// The operation's client dies at its n-th change; the rival comes, and meets a fault of its own at its m-th.
enum class Cuts { both, no_n, no_m };
Cuts cut_and_fault(const Expectation& expected, unsigned n, unsigned m, Fault::Kind rivals) {
  INFO(expected.scenario.name << ": crash after change " << n << ", then the rival: " << lccfs::describe(rivals)
                              << ", change " << m);
  World world(expected.base);
  Client a = world.mount(expected.memory);
  a.prepare(expected.scenario, expected.memory);
  const NthMutation first(n, {Fault::Kind::applied_and_crash});
  a.store().set_hook(first);
  a.perform(expected.scenario.operation);
  a.bury();
  if (!first.reached()) return Cuts::no_n;
  world.let_a_minute_pass();
  Client b = world.mount(expected.memory);
  const NthMutation second(m, {rivals});
  b.store().set_hook(second);
  Outcome outcome{dead, b.perform(expected.scenario.rival), {}};
  if (!second.reached()) return Cuts::no_m;
  const bool dies = rivals == Fault::Kind::applied_and_crash || rivals == Fault::Kind::not_applied_and_crash;
  if (dies) {
    b.bury();
    ++cases.crashes;
  } else {
    b.unmount();
    ++cases.repeats;
  }
  outcome.tree = world.tree();
  std::vector<Outcome> allowed{expected.rival_only, expected.operation_then_rival};
  if (dies) allowed.insert(allowed.end(), {{dead, dead, expected.before}, {dead, dead, expected.alone.tree}});
  for (Outcome& one : allowed) {
    one.operation = dead;
    if (dies) one.rival = outcome.rival;
  }
  expect_one_of(outcome, allowed);
  world.expect_nothing_left();
  return Cuts::both;
}

/// The store runs the n-th change twice, or loses its answer, and nobody dies. Perhaps the same client continues with
/// what it remembers.
bool repeat(const Expectation& expected, unsigned n, Fault::Kind kind, bool continues) {
  INFO(expected.scenario.name << describe(expected.memory) << ": " << lccfs::describe(kind) << ", change " << n
                              << (continues ? ", then the rival's operation by the same client" : ""));
  World world(expected.base);
  Client a = world.mount(expected.memory);
  a.prepare(expected.scenario, expected.memory);
  const NthMutation hook(n, {kind});
  a.store().set_hook(hook);
  Outcome outcome{a.perform(expected.scenario.operation), not_done, {}};
  if (!hook.reached()) return false;
  ++cases.repeats;
  if (continues) outcome.rival = a.perform(expected.scenario.rival);
  a.unmount();
  outcome.tree = world.tree();
  expect_one_of(outcome, {continues ? expected.operation_then_rival : expected.alone});
  world.expect_nothing_left();
  return true;
}

/// What is left of a case that two clients have been in.
void conclude(const Expectation& expected, World& world, Outcome outcome, Client& a, Client& b) {
  a.unmount();
  b.unmount();
  outcome.tree = world.tree();
  expect_one_of(outcome, {expected.operation_then_rival, expected.rival_then_operation});
  world.expect_nothing_left();
}

/// The n-th change is applied; the rival acts; then the store runs the change again, and answers.
bool run_again(const Expectation& expected, unsigned n) {
  INFO(expected.scenario.name << describe(expected.memory) << ": "
                              << "change " << n << " is run again after the rival");
  World world(expected.base);
  Client a = world.mount(expected.memory);
  Client b = world.mount(expected.memory);
  a.prepare(expected.scenario, expected.memory);
  const NthMutation hook(n, {Fault::Kind::run_again_later});
  a.store().set_hook(hook);
  auto result = std::async(std::launch::async, [&] { return a.perform(expected.scenario.operation); });
  const auto done = [&] { return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready; };
  while (a.store().held().empty() && !done()) std::this_thread::yield();
  Outcome outcome{not_done, b.perform(expected.scenario.rival), {}};
  a.store().release_all();
  outcome.operation = result.get();
  if (!hook.reached()) return false;
  ++cases.repeats;
  conclude(expected, world, std::move(outcome), a, b);
  return true;
}

/// The rival does all of its operation right before the n-th step, reads included.
bool race(const Expectation& expected, unsigned n) {
  INFO(expected.scenario.name << describe(expected.memory) << ": "
                              << "the rival acts before step " << n);
  World world(expected.base);
  Client a = world.mount(expected.memory);
  Client b = world.mount(expected.memory);
  a.prepare(expected.scenario, expected.memory);
  Outcome outcome{not_done, not_done, {}};
  std::atomic<unsigned> seen = 0;
  a.store().set_hook([&](const StepInfo&) {
    if (seen++ == n) outcome.rival = b.perform(expected.scenario.rival);
    return Fault{};
  });
  outcome.operation = a.perform(expected.scenario.operation);
  a.store().set_hook(nullptr);
  if (seen <= n) return false;
  ++cases.races;
  conclude(expected, world, std::move(outcome), a, b);
  return true;
}

const std::vector<Expectation>& expectations() {
  static const std::vector<Expectation> all = [] {
    std::vector<Expectation> made;
    constexpr auto memories = std::size(all_memories);
    for (const auto i : drawn_of(all_scenarios().size() * memories)) {
      made.emplace_back(all_scenarios()[i / memories], all_memories[i % memories]);
    }
    return made;
  }();
  return all;
}

TEST_CASE("uncut, each operation does what it should") {
  for (const Expectation& expected : expectations()) {
    INFO(expected.scenario.name << describe(expected.memory));
    const auto& error = expected.scenario.error;
    CHECK(expected.alone.operation == (error ? lccfs::describe(*error) : "ok"));
    CHECK(text_of(expected.alone.tree) == text_of(expected.scenario.after));
    if (error) CHECK(text_of(expected.alone.tree) == text_of(expected.before));
  }
}

TEST_CASE("an operation whose client dies at any step has wholly happened, or not at all") {
  for (const Expectation& expected : expectations()) {
    for (const auto kind : {Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash}) {
      for (unsigned n = 0; cut(expected, n, kind, Landing::never); ++n) continue;
    }
  }
}

TEST_CASE("a dead client's last step that lands late makes its operation happen wholly, or not at all") {
  for (const Expectation& expected : expectations()) {
    for (const auto landing : {Landing::before_anybody_looks, Landing::before_the_rival, Landing::after_the_rival}) {
      for (unsigned n = 0; cut(expected, n, Fault::Kind::crash_and_land_later, landing); ++n) continue;
    }
  }
}

TEST_CASE("what a dead client left is dealt with by one who dies himself, or whose steps are repeated") {
  for (const Expectation& expected : expectations()) {
    if (expected.memory == Memory::warm || expected.scenario.rival_does_two) continue;
    for (const auto kind : {Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash,
                            Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied}) {
      Cuts last = Cuts::both;
      for (unsigned n = 0; last != Cuts::no_n; ++n) {
        last = Cuts::both;
        for (unsigned m = 0; last == Cuts::both; ++m) last = cut_and_fault(expected, n, m, kind);
      }
    }
  }
}

TEST_CASE("a step that is run twice, or whose answer is lost, changes nothing of what its operation does and answers") {
  for (const Expectation& expected : expectations()) {
    for (const auto kind :
         {Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied}) {
      for (const bool continues : {false, true}) {
        for (unsigned n = 0; repeat(expected, n, kind, continues); ++n) continue;
      }
    }
  }
}

TEST_CASE("a step that is run again after another client acted leaves what some order of the two would") {
  for (const Expectation& expected : expectations()) {
    // The rival asks for a directory whose object does not answer before it is done: interleave_test has such orders.
    if (holds_directories(expected.memory)) continue;
    for (unsigned n = 0; run_again(expected, n); ++n) continue;
  }
}

TEST_CASE("an operation into which another client's falls comes out as before it or after it") {
  for (const Expectation& expected : expectations()) {
    // The rival asks for a directory whose batch is on its way, and would wait for it here: so does interleave_test.
    if (expected.memory == Memory::behind) continue;
    for (unsigned n = 0; race(expected, n); ++n) continue;
  }
}

}  // namespace
}  // namespace lccfs::crash
