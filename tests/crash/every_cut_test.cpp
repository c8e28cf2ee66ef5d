// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Every cut of every operation in every state: at each step that changes something, with each outcome
// (docs/TESTING.md).
#include <fcntl.h>

#include <cstdio>
#include <memory>

#include "crash/pairs.h"
#include "crash/sampling.h"
#include "crash/stage.h"
#include "support/catch.h"
#include "support/collecting.h"
#include "support/hooks.h"

namespace lccfs::crash {
namespace {

using test::need;
using test::NthMutation;

/// Printed at the end, so that a suite that shrinks is seen.
struct CaseCounter {
  std::size_t operations = 0, cuts = 0;
  ~CaseCounter() { std::printf("cuts: %zu, of %zu operations in a state\n", cuts, operations); }
} cases;

/// What else there is while the operation runs.
enum class Beside { nothing, a_warm_memory, a_reader, a_writer, its_leases, its_log, leases_elsewhere };
constexpr Beside all_besides[] = {Beside::nothing,    Beside::a_warm_memory, Beside::a_reader,        Beside::a_writer,
                                  Beside::its_leases, Beside::its_log,       Beside::leases_elsewhere};

const char* describe(Beside beside) {
  switch (beside) {
    case Beside::nothing:
      return "";
    case Beside::a_warm_memory:
      return ", with what its client remembers";
    case Beside::a_reader:
      return ", a open elsewhere";
    case Beside::a_writer:
      return ", a written elsewhere";
    case Beside::its_leases:
      return ", which holds the directories";
    case Beside::its_log:
      return ", which writes names behind";
    case Beside::leases_elsewhere:
      return ", the directories held elsewhere";
  }
  return "?";
}

Memory memory_of_client(Beside beside) {
  if (beside == Beside::its_leases) return Memory::leased;
  if (beside == Beside::its_log) return Memory::behind;
  return beside == Beside::a_warm_memory ? Memory::warm : Memory::cold;
}

/// Another client that has a open, and perhaps holds its lease; or that holds the directories.
class OtherClient {
 public:
  OtherClient(World& world, Beside beside)
      : client_(world.mount(beside == Beside::leases_elsewhere ? Memory::leased : Memory::cold)) {
    if (beside == Beside::leases_elsewhere) client_.prepare(Memory::leased);
    if (beside == Beside::leases_elsewhere) return;
    handle_ = need(client_.paths().open("/d/a", O_RDWR));
    if (beside == Beside::a_writer) need(client_.paths().write(*handle_, 0, std::string(20, 'w')));
  }
  void end() {
    if (handle_) client_.paths().close(*handle_);
    client_.unmount();
  }

 private:
  Client client_;
  std::optional<HandleId> handle_;
};

const char* describe(Writes writes) {
  if (writes == Writes::wait) return ", writes wait";
  return writes == Writes::outlive_closes ? ", writes outlive the close" : "";
}

struct Cut {
  Fault::Kind kind;
  bool lands_when_taken_for_gone = false;  ///< else, what lands later does so before anybody looks
  bool is_fenced_before = false;           ///< stopped right before the step, fenced by a collector, and continues
};
constexpr Cut all_cuts[] = {
    {Fault::Kind::not_applied_and_crash},      {Fault::Kind::applied_and_crash}, {Fault::Kind::crash_and_land_later},
    {Fault::Kind::crash_and_land_later, true}, {Fault::Kind::applied_twice},     {Fault::Kind::lost_answer_applied},
    {Fault::Kind::lost_answer_not_applied},    {Fault::Kind::none, false, true},
};

/// The client is stopped for so long that a collector takes it for gone.
void fence_stopped(World& world, Client& client) {
  client.store().set_deaf(true);
  client.store().lose_watches();
  world.let_a_minute_pass();
  test::collect(world.cluster(), world.clock());
}

/// The operation with that fault at its n-th change. nullopt: it has no so many.
std::optional<std::string> cut_at(Stage& stage, const Start& start, const Call& call, Beside beside, Writes writes,
                                  const Cut& with, unsigned n) {
  World world(start.world);
  std::unique_ptr<OtherClient> other;
  std::vector<Performed> history;
  const bool is_alone = memory_of_client(beside) != Memory::cold || beside == Beside::nothing;
  if (!is_alone) other = std::make_unique<OtherClient>(world, beside);
  if (beside == Beside::a_writer) {
    const Call written{.kind = Call::Kind::write, .path = "/d/a", .offset_bytes = 0, .size_bytes = 20, .letter = 'w'};
    history.push_back({.client = 1, .call = written, .result = "ok", .begin = 0, .end = 1});
  }
  Client client = world.mount(writes, memory_of_client(beside));
  client.prepare(memory_of_client(beside));
  const NthMutation hook(n, {with.kind});
  client.store().set_hook([&](const StepInfo& info) {
    const bool before = hook.reached();
    const Fault fault = hook(info);
    if (with.is_fenced_before && !before && hook.reached()) fence_stopped(world, client);
    return fault;
  });
  Performed performed{.client = 0, .call = call, .result = client.perform(call), .begin = 1};
  const bool outlives = writes == Writes::outlive_closes && !client.store().crashed();
  if (outlives) client.try_to_unmount();
  client.store().set_hook(nullptr);
  if (!client.store().crashed() && !client.may_have_lost_bytes()) performed.end = 2;
  if (outlives || client.store().crashed() || (with.is_fenced_before && hook.reached())) {
    client.bury();
  } else {
    client.unmount();
  }
  history.push_back(performed);
  if (with.lands_when_taken_for_gone) world.let_a_minute_pass();
  client.store().land_late_steps();
  if (other) other->end();
  if (!hook.reached()) return std::nullopt;
  return stage.judge(world, history);
}

bool has_a_file_a(const Start& start) {
  for (const std::string& line : start.model.lines()) {
    if (line.starts_with("/d/a f")) return true;
  }
  return false;
}

void cut_with(Stage& stage, const Start& start, const std::string& state, const Call& call, Beside beside,
              Writes writes) {
  ++cases.operations;
  for (const Cut& with : all_cuts) {
    for (unsigned n = 0;; ++n) {
      const auto wrong = cut_at(stage, start, call, beside, writes, with, n);
      if (!wrong) break;
      ++cases.cuts;
      INFO(state << ": " << text_of(call) << describe(beside) << describe(writes) << ": " << lccfs::describe(with.kind)
                 << (with.lands_when_taken_for_gone ? " a minute" : "")
                 << (with.is_fenced_before ? ", stopped and fenced before it" : "") << ", change " << n);
      if (!wrong->empty()) FAIL_CHECK(*wrong);
    }
  }
}

void cut_everywhere(Stage& stage, const Start& start, const std::string& state, const Call& call) {
  if (!is_wanted(state + ": " + text_of(call))) return;
  for (const Beside beside : all_besides) {
    if ((beside == Beside::a_reader || beside == Beside::a_writer) && !has_a_file_a(start)) continue;
    for (const Writes writes : {Writes::are_buffered, Writes::outlive_closes, Writes::wait}) {
      cut_with(stage, start, state, call, beside, writes);
    }
  }
}

void cut_all(const std::vector<State>& states, const std::vector<Call>& calls) {
  std::size_t number = 0;
  for (const State& state : states) {
    const Start start(state.setup);
    Stage stage(start);
    for (const Call& call : calls) {
      if (is_drawn(number++)) cut_everywhere(stage, start, state.name, call);
    }
  }
}

TEST_CASE("an operation on names that is cut, repeated or not answered at any step is wholly done or not at all") {
  auto calls = operations(0610);
  for (const Call& call : further_operations()) calls.push_back(call);
  cut_all(states(), calls);
}

TEST_CASE("an operation on a file that is cut, repeated or not answered at any step is wholly done or not at all") {
  cut_all(data_states(), data_operations());
}

/// A client that makes and removes names, and dies at the n-th change of its start or of its clean end. nullopt: there
/// is no such change.
std::optional<std::string> cut_start_or_end(Stage& stage, const Start& start, bool at_end, Fault::Kind kind,
                                            unsigned n) {
  World world(start.world);
  const NthMutation hook(n, {kind});
  std::vector<Performed> history;
  const auto store = world.cluster().new_client();
  if (!at_end) store->set_hook(hook);
  auto file_system = mount_volume(store, world.clock(), {});
  if (file_system) {
    test::Paths paths(**file_system);
    for (const Call& call : at_end ? operations(0610) : std::vector<Call>{}) {
      history.push_back({.client = 0, .call = call, .result = call.perform(paths), .begin = 0, .end = 1});
    }
    if (at_end) store->set_hook(hook);
    static_cast<void>((*file_system)->unmount());
    file_system->reset();
  }
  store->set_hook(nullptr);
  store->crash();
  store->land_late_steps();
  if (!hook.reached()) return std::nullopt;
  return stage.judge(world, history);
}

TEST_CASE("a client that dies at any step of its start or of its end leaves nothing that a collector does not find") {
  const Start start(states().back().setup);
  Stage stage(start);
  for (const bool at_end : {false, true}) {
    for (const auto kind :
         {Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash, Fault::Kind::crash_and_land_later}) {
      for (unsigned n = 0;; ++n) {
        const auto wrong = cut_start_or_end(stage, start, at_end, kind, n);
        if (!wrong) break;
        ++cases.cuts;
        INFO((at_end ? "end: " : "start: ") << lccfs::describe(kind) << ", change " << n);
        if (!wrong->empty()) FAIL_CHECK(*wrong);
      }
    }
  }
}

TEST_CASE("a name whose inode is lost counts as free, whatever is cut") {
  const Call directory{.kind = Call::Kind::mkdir, .path = "/d", .mode = 0700};
  const Call lost{.kind = Call::Kind::mkfile, .path = "/d/a", .mode = 0601};
  const Call other{.kind = Call::Kind::mkfile, .path = "/d/b", .mode = 0602};
  Start start({directory, lost, other});
  start.lose_inode("/d/a");
  Stage stage(start);
  for (const Call& call : operations(0610)) cut_everywhere(stage, start, "a has lost its inode", call);
}

}  // namespace
}  // namespace lccfs::crash
