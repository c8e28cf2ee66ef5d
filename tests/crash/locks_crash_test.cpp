// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Locks between clients, with the steps of one of them cut, lost, repeated and late, and with those of two in every
// order (docs/LOCKS.md section 2).
#include <bit>
#include <cstdio>
#include <future>
#include <thread>

#include "crash/lock_world.h"
#include "crash/sampling.h"
#include "support/catch.h"
#include "support/hooks.h"
#include "support/lock_calls.h"

namespace lccfs::crash {
namespace {

using std::chrono::milliseconds;
using test::NthMutation;
using What = LockAct::What;

/// Printed at the end, so that a suite that shrinks is seen.
struct CaseCounter {
  unsigned cuts = 0, scenarios = 0, orders = 0, pairs = 0;
  ~CaseCounter() {
    std::printf("locks: %u cuts in %u scenarios, %u orders of %u pairs\n", cuts, scenarios, orders, pairs);
  }
} counted;

// ---- acts, in short

LockAct X(char client, std::uint64_t owner, std::uint64_t first, std::uint64_t last) {
  return {client, What::lock, test::exclusive({}, owner, first, last)};
}
LockAct S(char client, std::uint64_t owner, std::uint64_t first, std::uint64_t last) {
  return {client, What::lock, test::shared({}, owner, first, last)};
}
LockAct U(char client, std::uint64_t owner, std::uint64_t first = 0, std::uint64_t last = LockModel::bytes - 1) {
  return {client, What::lock, test::with(test::exclusive({}, owner, first, last), LockType::none)};
}
LockAct flock(char client, std::uint64_t owner) { return {client, What::lock, test::whole_file({}, owner)}; }
LockAct waits(LockAct act) {
  act.request.waits = true;
  return act;
}
LockAct begins_to_wait(LockAct act) {
  act.what = What::begin_to_wait;
  return act;
}
LockAct does(char client, What what, std::uint64_t owner = 1) { return {client, what, test::exclusive({}, owner)}; }

LockActs operator+(LockActs acts, const LockActs& further) {
  acts.insert(acts.end(), further.begin(), further.end());
  return acts;
}

/// Both have had locks: what stands in the store says so.
LockActs share() { return {X('A', 1, 8, 8), X('B', 1, 9, 9), U('A', 1), U('B', 1), X('A', 1, 8, 8), U('A', 1)}; }

LockActs sixteen_in_a_row() {
  LockActs acts;
  for (int i = 0; i < 16; ++i) acts = std::move(acts) + LockActs{X('A', 1, 0, 4), U('A', 1)};
  return acts;
}

// ---- cuts

struct LockScenario {
  std::string name;
  LockActs setup, of_a, of_others;
};

std::vector<LockScenario> lock_scenarios() {
  const LockActs exclusive_by_a{X('A', 1, 0, 4)}, want_part{X('B', 1, 3, 5), X('C', 1, 0, 0)};
  const LockActs two_by_b{X('B', 1, 3, 3), X('B', 1, 0, 0)};
  return {
      {"first lock", {}, exclusive_by_a, want_part},
      {"lock in shared state", share(), exclusive_by_a, want_part},
      {"shared lock beside another's", share() + LockActs{S('B', 1, 0, 9)}, {S('A', 1, 0, 4)}, {X('B', 2, 0, 0)}},
      {"lock of what the other has leased", {X('B', 1, 5, 9)}, exclusive_by_a, two_by_b},
      {"lock where the other's lease is empty", {X('B', 1, 5, 9), U('B', 1)}, exclusive_by_a, want_part},
      {"lock over the lease of one who died", {X('C', 1, 0, 9), does('C', What::die)}, exclusive_by_a, want_part},
      {"lock over the key of one who died",
       share() + LockActs{X('C', 1, 0, 7), does('C', What::die)},
       {X('A', 1, 0, 4), X('A', 1, 6, 7)},
       want_part},
      {"lock beside the key of one who died",
       share() + LockActs{X('C', 1, 6, 7), does('C', What::die)},
       exclusive_by_a,
       {X('B', 1, 3, 3), X('B', 1, 6, 6)}},
      {"unlock", share() + exclusive_by_a, {U('A', 1)}, want_part},
      {"unlock of a part", share() + LockActs{X('A', 1, 0, 9)}, {U('A', 1, 3, 5)}, two_by_b},
      {"unlock and lock anew", share() + exclusive_by_a, {U('A', 1), X('A', 2, 2, 6)}, want_part},
      {"share on request", exclusive_by_a, {}, {X('B', 1, 8, 8), X('B', 1, 3, 3), X('C', 1, 4, 9)}},
      {"share of an empty lease", exclusive_by_a + LockActs{U('A', 1)}, {}, want_part},
      {"share, unlock and lock", exclusive_by_a, {}, {X('B', 1, 8, 8), U('A', 1), X('A', 1, 5, 5), X('B', 1, 3, 5)}},
      {"end of a process",
       share() + LockActs{X('A', 1, 0, 1), X('A', 2, 5, 6)},
       {does('A', What::close_process)},
       {X('B', 1, 0, 1), X('B', 1, 5, 5)}},
      {"close",
       share() + LockActs{X('A', 1, 0, 1), X('A', 2, 5, 6), flock('A', 2)},
       {does('A', What::close)},
       {X('B', 1, 0, 9), flock('B', 1)}},
      {"upgrade", share() + LockActs{S('A', 1, 0, 9)}, {X('A', 1, 0, 9)}, {S('B', 1, 0, 0)}},
      {"refused upgrade",
       share() + LockActs{S('A', 1, 0, 9), S('B', 1, 4, 4)},
       {X('A', 1, 0, 9)},
       {X('B', 1, 4, 4), S('C', 1, 0, 0)}},
      {"downgrade", share() + LockActs{X('A', 1, 0, 9)}, {S('A', 1, 0, 9)}, {S('B', 1, 0, 9), X('B', 1, 0, 0)}},
      {"shared over an exclusive one and past it, refused",
       share() + LockActs{X('A', 1, 0, 4), X('B', 1, 5, 9)},
       {S('A', 1, 0, 9)},
       {S('B', 1, 0, 4), X('B', 1, 2, 9)}},
      {"shared over an exclusive one and past it",
       share() + LockActs{X('A', 1, 0, 4), S('B', 1, 8, 9)},
       {S('A', 1, 0, 9)},
       {S('B', 1, 0, 4), X('B', 1, 0, 1)}},
      {"flock and range", share(), {flock('A', 1), X('A', 1, 0, 4)}, {flock('B', 1), X('B', 1, 5, 9)}},
      {"lease after sixteen", share() + sixteen_in_a_row(), exclusive_by_a, want_part},
      {"take over by a third",
       share() + LockActs{X('A', 1, 0, 4), S('B', 1, 6, 9)},
       {X('A', 1, 5, 5)},
       {X('C', 1, 0, 2), X('B', 1, 2, 4), U('C', 1), X('B', 1, 2, 4)}},
      {"waiter",
       share() + exclusive_by_a + LockActs{begins_to_wait(X('B', 1, 3, 5))},
       {U('A', 1)},
       {does('B', What::get_it), X('C', 1, 4, 9)}},
      {"waiter for what is leased",
       exclusive_by_a + LockActs{begins_to_wait(X('B', 1, 3, 5))},
       {U('A', 1)},
       {does('B', What::get_it), X('C', 1, 4, 9)}},
  };
}

constexpr Fault::Kind at_once[] = {Fault::Kind::not_applied_and_crash,   Fault::Kind::applied_and_crash,
                                   Fault::Kind::applied_twice,           Fault::Kind::lost_answer_applied,
                                   Fault::Kind::lost_answer_not_applied, Fault::Kind::fail};
constexpr Fault::Kind with_an_end[] = {Fault::Kind::crash_and_land_later, Fault::Kind::run_again_later,
                                       Fault::Kind::hold};
/// The end comes before that step of the others, or behind them all.
constexpr unsigned ends = 12;

/// A fault in A's n-th step. What it leaves in flight arrives before the others' `end`-th step.
struct Cut {
  unsigned n;
  Fault::Kind kind;
  unsigned end = ends;
};

class CutCase {
 public:
  CutCase(const LockScenario& scenario, std::optional<Cut> cut)
      : scenario_(scenario), cut_(cut), nth_(cut ? cut->n : UINT32_MAX, {cut ? cut->kind : Fault::Kind::none}) {}

  std::string play() {
    world_.perform(scenario_.setup);
    world_.set_script('A', [this](const StepInfo& info) {
      steps_ += info.mutates() ? 1 : 0;
      return nth_(info);
    });
    auto a = std::async(std::launch::async, [this] { world_.perform(scenario_.of_a); });
    while (a.wait_for(milliseconds(0)) != std::future_status::ready && world_.store('A').held().empty()) {
      std::this_thread::yield();
    }
    for (const char other : {'B', 'C'}) {
      world_.set_script(other, [this](const StepInfo&) {
        if (cut_ && others_steps_++ == cut_->end) arrive();
        return Fault{};
      });
    }
    auto others = std::async(std::launch::async, [this] { world_.perform(scenario_.of_others); });
    while (others.wait_for(milliseconds(500)) != std::future_status::ready) arrive();
    while (a.wait_for(milliseconds(1)) != std::future_status::ready) arrive();
    arrive();
    return world_.conclude();
  }
  /// Of A's that change something.
  unsigned steps() const { return steps_; }

 private:
  void arrive() {
    world_.store('A').land_late_steps();
    world_.store('A').release_all();
  }

  const LockScenario& scenario_;
  const std::optional<Cut> cut_;
  const NthMutation nth_;
  std::atomic<unsigned> steps_ = 0, others_steps_ = 0;
  LockWorld world_{{}};
};

std::string text_of(const LockScenario& scenario, const std::optional<Cut>& cut) {
  if (!cut) return scenario.name;
  return scenario.name + "; step " + std::to_string(cut->n) + " " + describe(cut->kind) + "; end " +
         std::to_string(cut->end);
}

bool is_asked_for(const std::string& line) {
  const auto replay = line_to_replay();
  return replay ? *replay == line : is_wanted(line);
}

std::vector<Cut> all_cuts(unsigned steps) {
  std::vector<Cut> cuts;
  for (unsigned n = 0; n < steps; ++n) {
    for (const auto kind : at_once) cuts.push_back({n, kind});
    for (const auto kind : with_an_end) {
      for (unsigned end = 0; end <= ends; ++end) cuts.push_back({n, kind, end});
    }
  }
  return cuts;
}

TEST_CASE("locks hold, and go, whatever becomes of a step of a client") {
  std::size_t number = 0;
  for (const auto& scenario : lock_scenarios()) {
    ++counted.scenarios;
    CutCase whole(scenario, std::nullopt);
    const auto wrong = whole.play();
    if (!wrong.empty()) FAIL_CHECK(scenario.name << "\n" << wrong);
    for (const auto& cut : all_cuts(whole.steps())) {
      const auto line = text_of(scenario, cut);
      if (!is_asked_for(line) || (!line_to_replay() && !is_drawn(number++))) continue;
      ++counted.cuts;
      const auto found = CutCase(scenario, cut).play();
      if (!found.empty()) FAIL_CHECK("LCCFS_REPLAY='" << line << "'\n" << found);
    }
  }
}

// ---- orders

/// Histories of A and B side by side.
struct LockPair {
  std::string name;
  LockActs setup, of_a, of_b;
};

LockActs adding(char client) { return {waits(X(client, 1, 0, 9)), does(client, What::increment), U(client, 1)}; }

std::vector<LockPair> lock_pairs() {
  const LockActs by_a{X('A', 1, 0, 4), U('A', 1)}, by_b{X('B', 1, 3, 5), U('B', 1)};
  return {
      {"lock and unlock, first", {}, by_a, by_b},
      {"lock and unlock, shared", share(), by_a, by_b},
      {"lock and keep, first", {}, {X('A', 1, 0, 4)}, {X('B', 1, 3, 5)}},
      {"lock and keep, shared", share(), {X('A', 1, 0, 4)}, {X('B', 1, 3, 5)}},
      {"lock and keep, leased", {X('A', 2, 9, 9)}, {X('A', 1, 0, 4)}, {X('B', 1, 3, 5)}},
      {"upgrades", share(), {S('A', 1, 0, 9), X('A', 1, 0, 9)}, {S('B', 1, 0, 9), X('B', 1, 0, 9)}},
      {"upgrades, leased", {S('A', 2, 9, 9)}, {S('A', 1, 0, 8), X('A', 1, 0, 8)}, {S('B', 1, 0, 8), X('B', 1, 0, 8)}},
      {"lock and close",
       share(),
       {X('A', 1, 0, 4), does('A', What::close), X('A', 2, 5, 5)},
       {X('B', 1, 4, 5), does('B', What::close)}},
      {"lock, unlock a part, lock",
       share() + LockActs{X('A', 1, 0, 9)},
       {U('A', 1, 3, 5), X('A', 2, 3, 3)},
       {X('B', 1, 3, 5), X('B', 1, 0, 0)}},
      {"lease again", share() + sixteen_in_a_row(), {X('A', 1, 0, 4), U('A', 1)}, {X('B', 1, 3, 5), X('B', 2, 0, 0)}},
      {"waits", {}, {waits(X('A', 1, 0, 4)), U('A', 1)}, {waits(X('B', 1, 3, 5)), U('B', 1)}},
      {"add under a lock, first", {}, adding('A'), adding('B')},
      {"add under a lock, shared", share(), adding('A'), adding('B')},
      {"add under a lock beside a lock",
       share(),
       adding('A'),
       {X('B', 1, 0, 0), U('B', 1), X('B', 1, 9, 9), U('B', 1)}},
  };
}

constexpr unsigned steps_in_order = 8;

class OrderCase {
 public:
  OrderCase(const LockPair& pair, unsigned order, const FileSystemOptions& options)
      : pair_(pair), order_(order), world_(options, "AB") {}

  std::string play() {
    world_.perform(pair_.setup);
    for (const char lane : {'A', 'B'}) {
      world_.set_script(lane, [this](const StepInfo& info) {
        const bool counts = info.kind == StepKind::apply || info.kind == StepKind::query;
        return Fault{counts && info.object == world_.inode_object() ? Fault::Kind::hold : Fault::Kind::none};
      });
    }
    begin(pair_.of_a, 0);
    begin(pair_.of_b, 1);
    for (unsigned step = 0; step < steps_in_order; ++step) continue_with((order_ >> step) & 1U);
    for (const char lane : {'A', 'B'}) world_.set_script(lane, nullptr);
    while (!is_done(0) || !is_done(1)) {
      world_.store('A').release_all();
      world_.store('B').release_all();
      std::this_thread::yield();
    }
    return world_.conclude();
  }

 private:
  void begin(const LockActs& acts, unsigned lane) {
    lanes_[lane] = std::async(std::launch::async, [this, &acts] { world_.perform(acts); });
  }
  bool is_done(unsigned lane) const { return lanes_[lane].wait_for(milliseconds(0)) == std::future_status::ready; }
  bool continues(unsigned lane) {
    auto& store = world_.store(lane == 0 ? 'A' : 'B');
    if (store.held().empty()) return false;
    store.release();
    return true;
  }
  /// The other does where this one waits for it, or is done.
  void continue_with(unsigned lane) {
    const auto enough = std::chrono::steady_clock::now() + milliseconds(3);
    while (!continues(lane)) {
      if (is_done(lane) || std::chrono::steady_clock::now() > enough) {
        if (continues(1 - lane) || is_done(1 - lane)) return;
      }
      std::this_thread::yield();
    }
  }

  const LockPair& pair_;
  const unsigned order_;
  LockWorld world_;
  std::future<void> lanes_[2];
};

FileSystemOptions buffered() {
  FileSystemOptions options;
  options.dirty_limit_bytes = 1 << 20;
  options.idle_leases = 16;
  return options;
}

TEST_CASE("locks of two clients hold in every order of their steps") {
  std::size_t number = 0;
  for (const auto& pair : lock_pairs()) {
    ++counted.pairs;
    for (unsigned order = 0; order < 1U << steps_in_order; ++order) {
      const auto line = pair.name + "; order " + std::to_string(order);
      if (!is_asked_for(line) || (!line_to_replay() && !is_drawn(number++))) continue;
      ++counted.orders;
      const auto wrong =
          OrderCase(pair, order, std::popcount(order) % 2 == 0 ? buffered() : FileSystemOptions{}).play();
      if (!wrong.empty()) FAIL_CHECK("LCCFS_REPLAY='" << line << "'\n" << wrong);
    }
  }
}

}  // namespace
}  // namespace lccfs::crash
