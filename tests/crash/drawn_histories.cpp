// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/drawn_histories.h"

#include <algorithm>
#include <random>
#include <unordered_set>

#include "crash/sampling.h"
#include "crash/stage.h"
#include "support/catch.h"

namespace lccfs::crash {

namespace {

constexpr unsigned most_calls = 3;

Play draw_play(const DrawnHistories& histories, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Play play;
  play.memory = all_memories[random() % std::size(all_memories)];
  play.holder = static_cast<unsigned>(random() % histories.clients);
  for (unsigned client = 0; client < histories.clients; ++client) {
    const auto choice = histories.choice(client);
    auto& calls = play.calls.emplace_back();
    const auto count = 1 + random() % most_calls;
    for (unsigned i = 0; i < count; ++i) calls.push_back(choice[random() % choice.size()]);
  }
  return play;
}

void count(const std::vector<Decision>& schedule, PlayedHistories& played) {
  const auto has = [&](Decision::Event event) {
    return std::ranges::any_of(schedule, [event](const Decision& decision) { return decision.event == event; });
  };
  ++played.all;
  if (has(Decision::Event::object_goes)) ++played.with_object_away;
  if (has(Decision::Event::watches_lapse)) ++played.with_lapsed_watches;
}

}  // namespace

std::string text_of(const PlayedHistories& played) {
  return std::to_string(played.all) + ", in " + std::to_string(played.with_object_away) +
         " of them an object was away, in " + std::to_string(played.with_lapsed_watches) + " watches lapsed";
}

PlayedHistories play(const DrawnHistories& histories, Interleaver& interleaver) {
  PlayedHistories played;
  const auto replay = line_to_replay();
  Rounds rounds;
  while (const auto round = rounds.next()) {
    std::uint64_t seed = std::uint64_t{*round} << 32;
    for (const State& state : histories.states) {
      const Start start(state.setup);
      Stage stage(start);
      std::unordered_set<std::string> seen;
      for (unsigned i = 0; i < histories.in_a_state; ++i, ++seed) {
        if (!is_drawn(i)) continue;
        const Play drawn = draw_play(histories, seed);
        const auto schedule = replay ? schedule_in(*replay, state.name, drawn) : std::nullopt;
        if (replay && !schedule) continue;
        const Interleaver::Choose choose =
            schedule ? follow(*schedule) : Interleaver::Choose(Sampler(seed, histories.clients));
        const auto line_now = [&] { return line_of(state.name, drawn, interleaver.schedule()); };
        interleaver.replay_by(line_now);
        const auto wrong = stage.play(drawn, interleaver, choose);
        const auto line = line_now();
        if (!wrong.empty()) FAIL_CHECK("LCCFS_REPLAY='" << line << "'\n" << wrong);
        if (seen.insert(line).second) count(interleaver.schedule(), played);
      }
    }
  }
  return played;
}

}  // namespace lccfs::crash
