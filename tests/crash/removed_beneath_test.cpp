// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A step of one client is applied and its answer is late; others remove all there is, collectors reclaim it; then the
// store runs the step again. Its first run stands (docs/PROTOCOL.md, rule 5, and recount on step numbers).
#include <cstdio>
#include <future>

#include "crash/pairs.h"
#include "crash/sampling.h"
#include "crash/stage.h"
#include "support/catch.h"
#include "support/collecting.h"
#include "support/hooks.h"

namespace lccfs::crash {
namespace {

using test::NthMutation;

/// Printed at the end, so that a suite that shrinks is seen.
struct CaseCounter {
  std::size_t repeats = 0;
  ~CaseCounter() { std::printf("cases: %zu steps run again after all was removed\n", repeats); }
} cases;

std::vector<Call> calls() {
  auto all = operations(0610);
  for (const Call& call : further_operations()) all.push_back(call);
  all.push_back({.kind = Call::Kind::rename, .path = "/d/a/f", .other = "/d/a/g"});
  return all;
}

/// Whatever there is, and in whichever order it can go.
std::vector<Call> removals() {
  std::vector<Call> removals;
  for (const char* name : {"/d/a", "/d/b", "/d/c"}) {
    for (const char* child : {"/f", "/g"}) {
      removals.push_back({.kind = Call::Kind::unlink, .path = std::string(name) + child});
      removals.push_back({.kind = Call::Kind::rmdir, .path = std::string(name) + child});
    }
    removals.push_back({.kind = Call::Kind::unlink, .path = name});
    removals.push_back({.kind = Call::Kind::rmdir, .path = name});
  }
  removals.push_back({.kind = Call::Kind::rmdir, .path = "/d"});
  return removals;
}

/// nullopt: the call has no n-th change that somebody waits for.
std::optional<std::string> run_again(Stage& stage, const Start& start, const Call& call, unsigned n) {
  World world(start.world);
  Client a = world.mount();
  Client b = world.mount();
  a.prepare(Memory::cold);
  test::TestCollector collector(world.cluster(), world.clock());
  const NthMutation hook(n, {Fault::Kind::run_again_later});
  a.store().set_hook(hook);
  auto answer = std::async(std::launch::async, [&] { return a.perform(call); });
  const auto done = [&] { return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready; };
  while (a.store().held().empty() && !done()) std::this_thread::yield();
  std::vector<Performed> history{{.client = 0, .call = call, .result = {}, .begin = 0, .end = 100}};
  for (const Call& removal : removals()) {
    const auto now = static_cast<unsigned>(history.size());
    history.push_back({.client = 1, .call = removal, .result = b.perform(removal), .begin = now, .end = now + 1});
  }
  collector.pass();
  collector.pass();
  a.store().release_all();
  history.front().result = answer.get();
  const bool reached = hook.reached();
  a.store().set_hook(nullptr);
  a.unmount();
  b.unmount();
  collector.end();
  if (!reached) return std::nullopt;
  ++cases.repeats;
  return stage.judge(world, history);
}

TEST_CASE("a step that is run again after all was removed and reclaimed keeps its first answer") {
  std::size_t number = 0;
  for (const State& state : states()) {
    const Start start(state.setup);
    Stage stage(start);
    for (const Call& call : calls()) {
      if (!is_drawn(number++)) continue;
      for (unsigned n = 0;; ++n) {
        const auto wrong = run_again(stage, start, call, n);
        if (!wrong) break;
        INFO(state.name << ": " << text_of(call) << ", change " << n);
        if (!wrong->empty()) FAIL_CHECK(*wrong);
      }
    }
  }
}

}  // namespace
}  // namespace lccfs::crash
