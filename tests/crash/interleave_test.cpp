// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Two operations of two clients, step by step between each other, in every state that matters: all orders of their
// steps, and drawn ones with a fault, and with a collector (docs/TESTING.md).
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <set>

#include "crash/interleaver.h"
#include "crash/pairs.h"
#include "crash/sampling.h"
#include "crash/stage.h"
#include "support/catch.h"

namespace lccfs::crash {
namespace {

/// From then on the first client runs to its end, then the second: two that undo each other's work for ever are no
/// case.
constexpr unsigned most_free_steps = 12;
constexpr unsigned faulty_orders_of_a_pair = 16;
constexpr unsigned collected_orders_of_a_pair = 4;

constexpr std::pair<Memory, unsigned> memories_of_a_pair[] = {{Memory::cold, 0},   {Memory::warm, 0},
                                                              {Memory::leased, 0}, {Memory::leased, 1},
                                                              {Memory::behind, 0}, {Memory::behind, 1}};

/// Printed at the end, so that a suite that shrinks is seen.
struct CaseCounter {
  std::size_t pairs = 0, orders = 0, faulty = 0, collected = 0;
  ~CaseCounter() {
    std::printf("interleavings: all %zu orders of %zu pairs; drawn: %zu with a fault, %zu with a collector too\n",
                orders, pairs, faulty, collected);
  }
} cases;

struct Pair {
  Stage& stage;
  const std::string& state;
  Play play;
  std::size_t number;
};

/// false: enough has failed.
bool goes_right(Interleaver& interleaver, const Pair& pair, const Interleaver::Choose& choose) {
  const auto replay = [&] { return line_of(pair.state, pair.play, interleaver.schedule()); };
  interleaver.replay_by(replay);
  const auto wrong = pair.stage.play(pair.play, interleaver, choose);
  if (wrong.empty()) return true;
  FAIL_CHECK("LCCFS_REPLAY='" << replay() << "'\n" << wrong);
  return false;
}

void for_each_pair(Interleaver& interleaver, bool with_collector,
                   const std::function<bool(Interleaver&, const Pair&)>& try_pair) {
  const auto firsts = operations(0610);
  const auto seconds = operations(0611);
  const auto replay = line_to_replay();
  std::size_t number = 0;
  for (const State& state : states()) {
    const Start start(state.setup);
    Stage stage(start);
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      for (std::size_t j = i; j < seconds.size(); ++j) {
        for (const auto& [memory, holder] : memories_of_a_pair) {
          if (!is_drawn(number++)) continue;
          const Pair pair{stage, state.name, {{{firsts[i]}, {seconds[j]}}, memory, holder, with_collector}, number};
          if (!is_wanted(line_of(state.name, pair.play, {}))) continue;
          const auto schedule = replay ? schedule_in(*replay, state.name, pair.play) : std::nullopt;
          if (schedule && !goes_right(interleaver, pair, follow(*schedule))) return;
          if (!replay && !try_pair(interleaver, pair)) return;
        }
      }
    }
  }
}

TEST_CASE("two operations whose steps fall between each other's come out as one after the other") {
  Interleaver one_after_the_other(std::chrono::minutes(2));
  for_each_pair(one_after_the_other, false, [](Interleaver& interleaver, const Pair& pair) {
    // What a client does behind its answers comes when it comes: these orders are drawn.
    if (pair.play.memory == Memory::behind) return true;
    ++cases.pairs;
    Enumeration orders;
    do {
      ++cases.orders;
      unsigned step = 0;
      const bool right = goes_right(interleaver, pair, [&](const std::vector<Interleaver::Waiting>& waiting) {
        const bool free = step++ < most_free_steps;
        return Decision{waiting[free ? orders.choose(static_cast<unsigned>(waiting.size())) : 0].lane};
      });
      if (!right) return false;
    } while (orders.next());
    return true;
  });
}

/// Draws so many orders of a pair, and counts those that are not the same.
bool draw_orders(Interleaver& interleaver, const Pair& pair, unsigned round, unsigned count, std::size_t& counter) {
  std::set<std::string> seen;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t seed = (std::uint64_t{round} << 40) + (std::uint64_t{pair.number} << 8) + i;
    const auto lanes = static_cast<unsigned>(pair.play.calls.size() + (pair.play.with_collector ? 1 : 0));
    if (!goes_right(interleaver, pair, Sampler(seed, lanes))) return false;
    if (seen.insert(text_of(interleaver.schedule())).second) ++counter;
  }
  return true;
}

TEST_CASE("two operations, in one of which a client dies or a step is repeated or not answered, come out whole") {
  Interleaver lanes;
  Rounds rounds;
  while (const auto round = rounds.next()) {
    for_each_pair(lanes, false, [&](Interleaver& interleaver, const Pair& pair) {
      return draw_orders(interleaver, pair, *round, faulty_orders_of_a_pair, cases.faulty);
    });
  }
}

TEST_CASE("a collector between two operations' steps, with a fault in one of the three, takes nothing that is needed") {
  Interleaver lanes;
  Rounds rounds;
  while (const auto round = rounds.next()) {
    for_each_pair(lanes, true, [&](Interleaver& interleaver, const Pair& pair) {
      return draw_orders(interleaver, pair, *round, collected_orders_of_a_pair, cases.collected);
    });
  }
}

}  // namespace
}  // namespace lccfs::crash
