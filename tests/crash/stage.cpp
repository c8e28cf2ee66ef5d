// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/stage.h"

#include <atomic>
#include <memory>

#include "base/mutex.h"
#include "format/object_names.h"
#include "support/collecting.h"
#include "support/hooks.h"

namespace lccfs::crash {

namespace {

/// What waited for an object is answered so late.
constexpr std::chrono::seconds away_for{45};

std::vector<Act> acts_of(const std::vector<Call>& calls) { return {calls.begin(), calls.end()}; }

/// A client with its calls, and how they went.
struct Actor {
  Actor(World& world, unsigned number, const std::vector<Call>& its_calls, Memory memory)
      : client(std::make_unique<Client>(world.mount(memory))) {
    for (const Call& call : its_calls) performed.push_back({number, call, {}});
  }

  /// `now`: the steps of all clients so far.
  void act(const std::atomic<unsigned>& now) {
    for (std::size_t number = 0; number < performed.size(); ++number) {
      const auto result = client->perform(performed[number].call);
      const Lock lock(mutex);
      performed[number].result = result;
      if (client->store().crashed()) return performed.resize(number + 1);
      performed[number].end = now;
      ++at_call;
    }
  }
  /// One of its threads does: while a call is under way, or after an answer.
  void does_a_step(unsigned now) {
    const Lock lock(mutex);
    if (at_call < performed.size() && performed[at_call].begin == Performed::never) performed[at_call].begin = now;
  }
  void end() {
    if (client->store().crashed()) return client->bury();
    client->leave();
  }

  std::unique_ptr<Client> client;
  std::vector<Performed> performed;
  std::size_t at_call = 0;
  Mutex mutex;  // guards what is written of the calls
};

}  // namespace

Start::Start(const std::vector<Call>& setup) : world(acts_of(setup)) {
  for (const Call& call : setup) model.perform(call);
}

void Start::lose_inode(const std::string& path) {
  Client client = world.mount();
  const Ino ino = test::need(client.paths().find(path));
  client.unmount();
  world.cluster().with_objects(
      [&](scripted::Objects& objects) { objects.metadata().erase(format::inode_object(ino)); });
  model.perform({.kind = Call::Kind::unlink, .path = path});
  is_damaged = true;
}

std::string text_of(const Play& play) {
  std::string text = play.memory == Memory::cold ? "cold" : "warm";
  if (holds_directories(play.memory)) text = std::string(1, static_cast<char>('A' + play.holder)) + " holds";
  if (play.memory == Memory::behind) text += " and writes behind";
  for (std::size_t i = 0; i < play.calls.size(); ++i) {
    text += std::string("; ") + static_cast<char>('A' + i) + ":";
    for (const Call& call : play.calls[i]) text += " " + text_of(call) + ",";
    text.pop_back();
  }
  if (play.with_collector) text += "; collector";
  return text;
}

std::string Stage::play(const Play& play, Interleaver& interleaver, const Interleaver::Choose& choose) {
  World world(start_.world);
  std::vector<std::unique_ptr<Actor>> actors;
  std::vector<Interleaver::Lane> lanes;
  std::atomic<unsigned> now = 0;
  for (unsigned i = 0; i < play.calls.size(); ++i) {
    auto& actor = *actors.emplace_back(std::make_unique<Actor>(world, i, play.calls[i], play.memory));
    actor.client->prepare(play.memory == Memory::cold ? Memory::cold : Memory::warm);
    lanes.push_back({&actor.client->store(), [&actor, &now] { actor.act(now); }});
  }
  if (holds_directories(play.memory)) actors[play.holder]->client->prepare(play.memory);
  std::unique_ptr<test::TestCollector> collector;
  if (play.with_collector) {
    collector = std::make_unique<test::TestCollector>(world.cluster(), world.clock());
    lanes.push_back({&collector->client(), [&collector] { static_cast<void>(collector->try_pass()); }});
  }
  interleaver.run(std::move(lanes), [&](const std::vector<Interleaver::Waiting>& waiting) {
    const Decision decision = choose(waiting);
    if (decision.event == Decision::Event::object_returns) world.clock().sleep_for(away_for);
    if (decision.event != Decision::Event::none) return decision;
    if (decision.lane < actors.size()) actors[decision.lane]->does_a_step(now);
    ++now;
    return decision;
  });
  std::vector<Performed> history;
  bool bytes_may_be_lost = false;
  for (auto& actor : actors) {
    actor->end();
    bytes_may_be_lost = bytes_may_be_lost || actor->client->may_have_lost_bytes();
    history.insert(history.end(), actor->performed.begin(), actor->performed.end());
  }
  for (auto& actor : actors) actor->client->store().land_late_steps();
  if (collector && !collector->client().crashed()) collector->end();
  if (collector) collector->client().land_late_steps();
  if (!bytes_may_be_lost) return judge(world, history);
  return start_.is_damaged ? "" : world.examine().problems;  // any prefix of its writes may be there
}

std::string Stage::judge(World& world, const std::vector<Performed>& history) {
  std::string key = world.fingerprint();
  for (const Performed& one : history) {
    key += one.result + std::to_string(one.begin) + "," + std::to_string(one.end) + ";";
  }
  const auto hash = std::hash<std::string>{}(key);
  if (found_good_.contains(hash)) return {};
  auto examined = world.examine();
  std::string wrong = start_.is_damaged ? "" : examined.problems;
  if (start_.is_damaged) {
    std::erase_if(examined.tree, [](const std::string& line) { return line.ends_with("lookup says: not found"); });
  }
  if (!is_explained(start_.model, history, examined.tree)) {
    wrong += "no order of the calls gives this:\n" + text_of(history) + text_of(examined.tree);
  }
  if (wrong.empty()) found_good_.insert(hash);
  return wrong;
}

}  // namespace lccfs::crash
