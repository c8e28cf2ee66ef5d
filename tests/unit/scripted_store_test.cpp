// SPDX-License-Identifier: LGPL-2.1-or-later
// What the script does to steps. The store's contract itself is held by the conformance suite.
#include "scripted/scripted_store.h"

#include <atomic>
#include <thread>

#include "scripted/describe.h"
#include "support/catch.h"
#include "support/hooks.h"

namespace lccfs {
namespace {

using test::once_on;

MetaTxn make(const std::string& object) { return {object, "make", {}, {mutation::CreateExclusive{}}}; }

MetaTxn append_mark(const std::string& object, const std::string& key) {
  return {object, "mark", {guard::ObjectExists{}, guard::KeyAbsent{key}}, {mutation::SetKey{key, "1"}}};
}

bool has_key(ObjectStore& store, const std::string& object, const std::string& key) {
  auto found = store.query({.object = object, .keys = {key}});
  REQUIRE(found.has_value());
  return found->keys.contains(key);
}

struct Pair {
  std::shared_ptr<ScriptedCluster> cluster = ScriptedCluster::make();
  std::shared_ptr<ScriptedClient> a = cluster->new_client();
  std::shared_ptr<ScriptedClient> b = cluster->new_client();
  Pair() { REQUIRE(a->apply(make("Inode.2")).has_value()); }
};

TEST_CASE("a crash before a step leaves nothing of it, a crash after it all of it") {
  const bool applied = GENERATE(false, true);
  Pair pair;
  pair.a->set_hook(once_on("mark", {applied ? Fault::Kind::applied_and_crash : Fault::Kind::not_applied_and_crash}));
  const auto answer = pair.a->apply(append_mark("Inode.2", "k"));
  REQUIRE(!answer);
  CHECK(answer.error().code == ErrorCode::fenced);
  CHECK(answer.error().outcome == Outcome::unknown);
  CHECK(has_key(*pair.b, "Inode.2", "k") == applied);
  CHECK(!pair.a->query({.object = "Inode.2"}));
  CHECK(pair.a->crashed());
}

TEST_CASE("a step that is run twice reports its second answer") {
  Pair pair;
  pair.a->set_hook(once_on("mark", {Fault::Kind::applied_twice}));
  const auto answer = pair.a->apply(append_mark("Inode.2", "k"));
  REQUIRE(!answer);
  CHECK(answer.error().code == ErrorCode::guard_failed);
  CHECK(has_key(*pair.b, "Inode.2", "k"));
}

TEST_CASE("a step that is run again later meets what others did in between") {
  Pair pair;
  pair.a->set_hook(once_on("mark", {Fault::Kind::run_again_later}));
  std::optional<Result<Applied>> answer;
  pair.a->apply_async(append_mark("Inode.2", "k"), [&](Result<Applied> result) { answer = std::move(result); });
  CHECK(!answer);
  REQUIRE(has_key(*pair.b, "Inode.2", "k"));
  REQUIRE(pair.b->apply({"Inode.2", "unmark", {guard::ObjectExists{}}, {mutation::RemoveKey{"k"}}}).has_value());
  pair.a->release();
  REQUIRE(answer.has_value());
  CHECK(answer->has_value());
  CHECK(has_key(*pair.b, "Inode.2", "k"));
}

TEST_CASE("a lost answer says that the outcome is unknown, and the client lives on") {
  const auto kind = GENERATE(Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  Pair pair;
  pair.a->set_hook(once_on("mark", {kind}));
  const auto answer = pair.a->apply(append_mark("Inode.2", "k"));
  REQUIRE(!answer);
  CHECK(answer.error().code == ErrorCode::timed_out);
  CHECK(answer.error().outcome == Outcome::unknown);
  CHECK(has_key(*pair.a, "Inode.2", "k") == (kind == Fault::Kind::lost_answer_applied));
}

TEST_CASE("a held step keeps this client's later steps on its object waiting, and no others") {
  Pair pair;
  REQUIRE(pair.a->apply(make("Inode.3")).has_value());
  pair.a->set_hook(once_on("mark", {Fault::Kind::hold}));
  std::vector<int> order;
  auto note = [&](int number) { return [&order, number](auto) { order.push_back(number); }; };
  pair.a->apply_async(append_mark("Inode.2", "k"), note(1));
  pair.a->query_async({.object = "Inode.2"}, note(2));
  pair.a->query_async({.object = "Inode.3"}, note(3));
  CHECK(order == std::vector{3});
  CHECK(!has_key(*pair.b, "Inode.2", "k"));
  REQUIRE(pair.a->held().size() == 1);
  pair.a->release();
  CHECK(order == std::vector{3, 1, 2});
}

TEST_CASE("a held step keeps a blocking caller waiting until another thread releases it") {
  Pair pair;
  pair.a->set_hook(once_on("mark", {Fault::Kind::hold}));
  bool applied = false;
  std::thread caller([&] { applied = pair.a->apply(append_mark("Inode.2", "k")).has_value(); });
  REQUIRE(pair.a->wait_for_held(1));
  pair.a->release_all();
  caller.join();
  CHECK(applied);
  CHECK(has_key(*pair.b, "Inode.2", "k"));
}

TEST_CASE("what a crash left in flight lands late, unless a fence bars it") {
  const bool fenced = GENERATE(false, true);
  Pair pair;
  pair.a->set_hook(once_on("mark", {Fault::Kind::crash_and_land_later}));
  CHECK(!pair.a->apply(append_mark("Inode.2", "k")));
  if (fenced) REQUIRE(pair.b->fence(pair.a->identity()).has_value());
  CHECK(!has_key(*pair.b, "Inode.2", "k"));  // the fencer's read tells the object of the fence
  CHECK(pair.a->land_late_steps() == (fenced ? 0 : 1));
  CHECK(has_key(*pair.b, "Inode.2", "k") == !fenced);
}

TEST_CASE("a fence does not yet bar a client from objects that nobody who knows of it has touched") {
  Pair pair;
  auto third = pair.cluster->new_client();
  REQUIRE(pair.b->fence(pair.a->identity()).has_value());
  SECTION("a step lands on an untouched object") { CHECK(pair.a->apply(append_mark("Inode.2", "k")).has_value()); }
  SECTION("a reader who did not sync fences tells nobody") {
    CHECK(!has_key(*third, "Inode.2", "k"));
    CHECK(pair.a->apply(append_mark("Inode.2", "k")).has_value());
  }
  SECTION("a reader who synced fences bars it") {
    REQUIRE(third->sync_fences().has_value());
    CHECK(!has_key(*third, "Inode.2", "k"));
    CHECK(!pair.a->apply(append_mark("Inode.2", "k")));
  }
  SECTION("the fencer's read bars it, and then it does nothing more anywhere") {
    CHECK(!has_key(*pair.b, "Inode.2", "k"));
    CHECK(!pair.a->apply(append_mark("Inode.2", "k")));
    CHECK(!pair.a->apply(make("Inode.9")));
  }
}

TEST_CASE("steps on an object that is away wait, are applied in their order when it is back, and hold up no others") {
  Pair pair;
  REQUIRE(pair.a->apply(make("Inode.3")).has_value());
  pair.cluster->set_away([](const std::string& object) { return object == "Inode.2"; });
  std::vector<std::string> answered;
  const auto send = [&](ScriptedClient& client, const std::string& key) {
    client.apply_async(append_mark("Inode.2", key), [&answered, key](const Result<Applied>& applied) {
      answered.push_back(key + (applied ? "" : " refused"));
    });
  };
  send(*pair.a, "first");
  send(*pair.a, "second");
  send(*pair.a, "first");
  CHECK(pair.a->apply(append_mark("Inode.3", "k")).has_value());
  CHECK(has_key(*pair.b, "Inode.3", "k"));
  CHECK(answered.empty());
  pair.cluster->set_away(nullptr);
  CHECK(answered == std::vector<std::string>{"first", "second", "first refused"});
}

TEST_CASE("calls that block wait for monitors and objects that are away") {
  Pair pair;
  const bool monitors = GENERATE(false, true);
  pair.cluster->set_away(
      [monitors](const std::string& object) { return (object == ScriptedCluster::monitors) == monitors; });
  std::atomic<unsigned> answered = 0;
  {
    const std::jthread call([&] {
      const bool right = monitors ? pair.a->sync_fences().has_value() && pair.a->fence(pair.b->identity()).has_value()
                                  : pair.a->notify("Inode.2", "?", std::chrono::seconds(1)).has_value();
      if (right) ++answered;
    });
    CHECK(answered == 0);
    pair.cluster->set_away(nullptr);
  }
  CHECK(answered == 1);
}

TEST_CASE("a look for watchers gives up on an object that is away") {
  Pair pair;
  pair.cluster->set_away([](const std::string& object) { return object == "Inode.2"; });
  CHECK(pair.a->presence("Inode.2", pair.a->identity()).error().code == ErrorCode::timed_out);
  pair.cluster->set_away(nullptr);
  CHECK(pair.a->presence("Inode.2", pair.a->identity()) == Presence::absent);
}

struct Heard final : WatchHandler {
  std::vector<std::string> heard;
  void on_notify(Bytes payload, std::move_only_function<void(Bytes)> answer) override {
    heard.push_back(payload);
    answer("yes");
  }
  void on_lost(Error) override { heard.push_back("lost"); }
};

TEST_CASE("a client that is cut off does and hears nothing, and afterwards all of it in order") {
  Pair pair;
  const auto heard = std::make_shared<Heard>();
  const auto watch = pair.a->watch("Inode.2", heard);
  REQUIRE(watch.has_value());
  pair.a->set_cut_off(true);
  unsigned answered = 0;
  pair.a->apply_async(append_mark("Inode.2", "k"),
                      [&](const Result<Applied>& applied) { answered += applied ? 1 : 0; });
  const auto reply = pair.b->notify("Inode.2", "late", std::chrono::milliseconds(1));
  REQUIRE(reply.has_value());
  CHECK(reply->silent == 1);
  const auto tell = pair.a->lapse_watches([](const std::string& object) { return object == "Inode.2"; });
  tell();
  CHECK(pair.b->presence("Inode.2", pair.a->identity()).value() == Presence::absent);
  CHECK(!has_key(*pair.b, "Inode.2", "k"));
  CHECK(answered == 0);
  CHECK(heard->heard.empty());
  pair.a->set_cut_off(false);
  CHECK(has_key(*pair.b, "Inode.2", "k"));
  CHECK(answered == 1);
  CHECK(heard->heard == std::vector<std::string>{"late", "lost"});
}

TEST_CASE("what a client sends while it is cut off may land after its death") {
  Pair pair;
  pair.a->set_cut_off(true);
  pair.a->apply_async(append_mark("Inode.2", "k"), [](const Result<Applied>&) {});
  pair.a->crash();
  CHECK(!has_key(*pair.b, "Inode.2", "k"));
  CHECK(pair.a->land_late_steps() == 1);
  CHECK(has_key(*pair.b, "Inode.2", "k"));
}

TEST_CASE("steps are counted and traced for each client") {
  Pair pair;
  pair.a->reset_record();
  REQUIRE(pair.a->apply(append_mark("Inode.2", "k")).has_value());
  CHECK(has_key(*pair.a, "Inode.2", "k"));
  CHECK(pair.a->counts() == StepCounts{.applies = 1, .queries = 1});
  CHECK(pair.a->trace() == std::vector<std::string>{"mark Inode.2", "query Inode.2"});
  CHECK(pair.b->counts() == StepCounts{});
}

TEST_CASE("a cloned cluster goes its own way") {
  Pair pair;
  auto copy = pair.cluster->clone();
  REQUIRE(pair.a->apply(append_mark("Inode.2", "k")).has_value());
  CHECK(!has_key(*copy->new_client(), "Inode.2", "k"));
}

TEST_CASE("transactions that the contract forbids are refused") {
  Pair pair;
  const MetaTxn forbidden[] = {
      {"Inode.2", "empty value", {guard::ObjectExists{}}, {mutation::SetKey{"k", ""}}},
      {"Inode.2", "empty guard", {guard::XattrEquals{"a", ""}}, {mutation::SetKey{"k", "1"}}},
      {"Inode.2", "late create", {}, {mutation::SetKey{"k", "1"}, mutation::CreateExclusive{}}},
      {"Inode.2", "remove and more", {}, {mutation::Remove{}, mutation::SetKey{"k", "1"}}},
  };
  for (const MetaTxn& txn : forbidden) {
    INFO(txn.step);
    const auto answer = pair.a->apply(txn);
    REQUIRE(!answer);
    CHECK(answer.error().code == ErrorCode::invalid);
  }
}

TEST_CASE("a transaction prints as its step, guards and mutations") {
  CHECK(scripted::describe(append_mark("Inode.2", "k")) == "mark on Inode.2\n  if exists\n  if k is absent\n  k = 1\n");
}

}  // namespace
}  // namespace lccfs
