// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Clients that read, write and cut one file, in drawn orders of their steps, with a fault in one of them: write leases
// asked for, given back and taken over in the midst of everything.
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

constexpr unsigned histories_in_a_state = 400;
constexpr unsigned clients = 2;
constexpr unsigned most_calls = 3;
constexpr std::chrono::milliseconds moves_within{2};

struct CaseCounter {
  std::size_t histories = 0;
  ~CaseCounter() { std::printf("histories of two clients on one file: %zu\n", histories); }
} cases;

Play draw_play(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Play play;
  play.warm = random() % 2 == 0;
  for (unsigned client = 0; client < clients; ++client) {
    const auto choice = file_calls(static_cast<char>('p' + client));
    auto& calls = play.calls.emplace_back();
    const auto count = 1 + random() % most_calls;
    for (unsigned i = 0; i < count; ++i) calls.push_back(choice[random() % choice.size()]);
  }
  return play;
}

TEST_CASE("what clients read of a file that others write and cut is explained by some order of their calls") {
  Interleaver interleaver(moves_within);
  const auto replay = line_to_replay();
  Rounds rounds;
  while (const auto round = rounds.next()) {
    std::uint64_t seed = std::uint64_t{*round} << 32;
    for (const State& state : data_states()) {
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
