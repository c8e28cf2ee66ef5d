// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Three clients with several calls each, drawn by seed, in a drawn order of their steps, with a fault in one of them.
#include <cstdio>
#include <random>
#include <unordered_set>

#include "crash/interleaver.h"
#include "crash/pairs.h"
#include "crash/sampling.h"
#include "crash/stage.h"
#include "support/catch.h"

namespace lccfs::crash {
namespace {

constexpr unsigned histories_in_a_state = 750;
constexpr unsigned clients = 3;
constexpr unsigned most_calls = 3;

struct CaseCounter {
  std::size_t histories = 0;
  ~CaseCounter() { std::printf("histories of three clients: %zu\n", histories); }
} cases;

Play draw_play(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Play play;
  play.warm = random() % 2 == 0;
  for (unsigned client = 0; client < clients; ++client) {
    const auto choice = operations(0610 + client);
    auto& calls = play.calls.emplace_back();
    const auto count = 1 + random() % most_calls;
    for (unsigned i = 0; i < count; ++i) calls.push_back(choice[random() % choice.size()]);
  }
  return play;
}

TEST_CASE("histories of three clients are explained by some order of their calls") {
  Interleaver interleaver;
  const auto replay = line_to_replay();
  Rounds rounds;
  while (const auto round = rounds.next()) {
    std::uint64_t seed = std::uint64_t{*round} << 32;
    for (const State& state : states()) {
      const Start start(state.setup);
      Stage stage(start);
      std::unordered_set<std::string> seen;
      for (unsigned i = 0; i < histories_in_a_state; ++i, ++seed) {
        if (i % stride() != 0) continue;
        const Play play = draw_play(seed);
        const auto schedule = replay ? schedule_in(*replay, state.name, play) : std::nullopt;
        if (replay && !schedule) continue;
        const auto wrong =
            stage.play(play, interleaver, schedule ? follow(*schedule) : Interleaver::Choose(Sampler(seed, clients)));
        const auto line = line_of(state.name, play, interleaver.schedule());
        if (!wrong.empty()) FAIL_CHECK("LCCFS_REPLAY='" << line << "'\n" << wrong);
        if (seen.insert(line).second) ++cases.histories;
      }
    }
  }
}

}  // namespace
}  // namespace lccfs::crash
