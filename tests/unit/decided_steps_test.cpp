// SPDX-License-Identifier: LGPL-2.1-or-later
// Guarded steps are decided (docs/PROTOCOL.md, rule 5), whatever becomes of their answers.
#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "instance/instance.h"
#include "support/catch.h"
#include "support/hooks.h"
#include "support/instances.h"

namespace lccfs {
namespace {

using test::InstanceVolume;
using test::need;
using test::once_on;
using test::Running;

const std::string directory = format::inode_object(root_ino);

MetaTxn insert(const std::string& key, const Bytes& value = "1") {
  return {directory, "insert", {guard::KeyAbsent{key}}, {mutation::SetKey{key, value}}};
}

MetaTxn remove(const std::string& key) {
  return {directory, "remove", {guard::KeyPresent{key}}, {mutation::RemoveKey{key}}};
}

bool has_key(InstanceVolume& volume, const std::string& key) {
  return need(volume.looker->query({.object = directory, .keys = {key}})).keys.contains(key);
}

std::uint64_t version_of(InstanceVolume& volume) { return need(volume.looker->query({.object = directory})).version; }

TEST_CASE("a step that goes through is applied, and tells the version after it") {
  InstanceVolume volume;
  const Running a = volume.start();
  const auto result = need(a->run(insert("n/1")));
  CHECK(result.decided == Decided::applied);
  CHECK(result.version == version_of(volume));
  CHECK(a.client->counts() == StepCounts{.applies = 1});
}

TEST_CASE("a step whose guard does not hold is refused, and has changed nothing") {
  InstanceVolume volume;
  const Running a = volume.start();
  need(a->run(insert("n/1")));
  const auto version = version_of(volume);
  CHECK(need(a->run(insert("n/1", "2"))).decided == Decided::refused);
  CHECK(version_of(volume) == version);
}

TEST_CASE("a step that was run twice, or whose answer was lost, is applied once") {
  const auto kind =
      GENERATE(Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  InstanceVolume volume;
  const Running a = volume.start();
  a.client->set_hook(once_on("insert", {kind}));
  // versions count the changes of all objects together
  const auto before = need(volume.looker->apply({directory, "touch", {}, {mutation::SetXattr{"mtime", "1"}}})).version;
  CHECK(need(a->run(insert("n/1"))).decided == Decided::applied);
  CHECK(has_key(volume, "n/1"));
  CHECK(version_of(volume) == before + 1);
}

TEST_CASE("a refused step stays refused, whatever becomes of its answer") {
  const auto kind =
      GENERATE(Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  need(b->run(insert("n/1", "b's")));
  a.client->set_hook(once_on("insert", {kind}));
  CHECK(need(a->run(insert("n/1"))).decided == Decided::refused);
}

TEST_CASE("a step that was applied and is run again after another undid it does not come back") {
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  a.client->set_hook(once_on("insert", {Fault::Kind::run_again_later}));
  std::optional<StepResult> result;
  std::thread operation([&] { result = need(a->run(insert("n/1"))); });
  REQUIRE(a.client->wait_for_held(1));
  CHECK(need(b->run(remove("n/1"))).decided == Decided::applied);
  a.client->release();
  operation.join();
  CHECK(result->decided == Decided::applied);
  CHECK(!has_key(volume, "n/1"));
}

TEST_CASE("a step on an object that is not there is an error, and makes none") {
  InstanceVolume volume;
  const Running a = volume.start();
  const auto result = a->run({"Inode.77", "insert", {}, {mutation::SetKey{"n/1", "1"}}});
  REQUIRE(!result);
  CHECK(result.error().code == ErrorCode::not_found);
  CHECK(!volume.looker->query({.object = "Inode.77"}));
  const auto repeatable = a->run_repeatable({"Inode.77", "touch", {}, {mutation::SetXattr{"mtime", "1"}}});
  REQUIRE(!repeatable);
  CHECK(repeatable.error().code == ErrorCode::not_found);
}

TEST_CASE("a full store is an error that says so, and nothing was applied") {
  InstanceVolume volume;
  const Running a = volume.start();
  a.client->set_hook(once_on("insert", {Fault::Kind::fail, ErrorCode::no_space}));
  const auto result = a->run(insert("n/1"));
  REQUIRE(!result);
  CHECK(result.error().code == ErrorCode::no_space);
  CHECK(!has_key(volume, "n/1"));
  CHECK(need(a->run(insert("n/1"))).decided == Decided::applied);
}

TEST_CASE("a step that may be done twice is sent again until it is answered") {
  const auto kind = GENERATE(Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  InstanceVolume volume;
  const Running a = volume.start();
  a.client->set_hook(once_on("touch", {kind}));
  need(a->run_repeatable({directory, "touch", {}, {mutation::SetXattr{"mtime", "1"}}}));
  CHECK(a.client->counts() == StepCounts{.applies = 2});
}

TEST_CASE("one instance has one guarded step in flight on an object, and others continue beside it") {
  InstanceVolume volume;
  const Running a = volume.start();
  need(a->run_repeatable({"Inode.50", "create", {}, {mutation::CreateExclusive{}}}));
  a.client->reset_record();
  a.client->set_hook(once_on("insert", {Fault::Kind::hold}));
  std::thread first([&] { need(a->run(insert("n/1"))); });
  REQUIRE(a.client->wait_for_held(1));
  std::thread second([&] { need(a->run(insert("n/2"))); });
  need(a->run({"Inode.50", "insert", {}, {mutation::SetKey{"n/1", "1"}}}));
  CHECK(a.client->counts() == StepCounts{.applies = 2});  // the second insert is not sent yet
  a.client->release_all();
  first.join();
  second.join();
  CHECK(has_key(volume, "n/1"));
  CHECK(has_key(volume, "n/2"));
}

TEST_CASE("a step that the store does not answer holds up no step on another object") {
  InstanceVolume volume;
  const Running a = volume.start();
  a.client->set_hook(once_on("insert", {Fault::Kind::hold}));
  std::thread hung([&] { need(a->run(insert("n/1"))); });
  REQUIRE(a.client->wait_for_held(1));
  auto others = std::async(std::launch::async, [&] {
    for (std::uint64_t ino = 2; ino < 5000; ++ino) {
      CHECK_FALSE(a->run({format::inode_object(Ino{ino}), "touch", {}, {mutation::SetKey{"k", "v"}}}));  // none there
    }
  });
  CHECK(others.wait_for(std::chrono::minutes(1)) == std::future_status::ready);
  a.client->release_all();
  hung.join();
}

// ---- without a thread that waits

/// What completions have answered.
struct Answered {
  std::map<std::string, Result<StepResult>> results;
  std::vector<std::string> order;
  Steps::Done as(const std::string& name) {
    return [this, name](Result<StepResult> result) {
      results.emplace(name, std::move(result));
      order.push_back(name);
    };
  }
};

TEST_CASE("steps on one object are sent one after the other, in the order of the calls, and block nobody") {
  InstanceVolume volume;
  const Running a = volume.start();
  need(a->run_repeatable({"Inode.50", "create", {}, {mutation::CreateExclusive{}}}));
  a.client->reset_record();
  a.client->set_hook(once_on("insert", {Fault::Kind::hold}));
  Answered answered;
  for (const std::string key : {"n/1", "n/2", "n/3"}) a->run_async(insert(key), answered.as(key));
  a->run_async({"Inode.50", "insert", {}, {mutation::SetKey{"n/1", "1"}}}, answered.as("elsewhere"));
  CHECK(answered.order == std::vector<std::string>{"elsewhere"});
  CHECK(a.client->counts() == StepCounts{.applies = 2});
  a.client->release_all();
  CHECK(answered.order == std::vector<std::string>{"elsewhere", "n/1", "n/2", "n/3"});
  CHECK(a.client->counts() == StepCounts{.applies = 4});
  CHECK(has_key(volume, "n/3"));
}

TEST_CASE("a step that waits behind one whose answer was lost is sent when that one is decided") {
  const auto kind = GENERATE(Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  InstanceVolume volume;
  const Running a = volume.start();
  std::vector<std::string> sent;
  a.client->set_hook([&](const StepInfo& info) {
    sent.push_back(info.step);
    return sent.size() == 1 ? Fault{kind} : Fault{};
  });
  Answered answered;
  a->run_async(insert("n/1"), answered.as("insert"));
  a->run_async(remove("n/1"), answered.as("remove"));
  CHECK(need(answered.results.at("insert")).decided == Decided::applied);
  CHECK(need(answered.results.at("remove")).decided == Decided::applied);
  CHECK(!has_key(volume, "n/1"));
  const bool sent_again = kind == Fault::Kind::lost_answer_not_applied;
  CHECK(sent.size() == (sent_again ? 4 : 3));  // the second is the look at l/
  CHECK(sent.back() == "remove");
}

TEST_CASE("a client that is fenced sends nothing of what waits, and answers all of it") {
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  a.client->set_hook(once_on("insert", {Fault::Kind::hold}));
  Answered answered;
  for (int i = 0; i < 10'000; ++i) {
    const std::string key = "n/" + std::to_string(i);
    a->run_async(insert(key), answered.as(key));
  }
  need(b->evict(a->id()));
  need(b->query({.object = directory}));  // from here on a is barred there
  a.client->reset_record();
  a.client->release_all();
  CHECK(a->fenced());
  CHECK(answered.order.size() == 10'000);
  for (const auto& [key, result] : answered.results) CHECK((!result && result.error().code == ErrorCode::fenced));
  CHECK(a.client->counts() == StepCounts{});
  CHECK(!has_key(volume, "n/0"));
  a->run_async(insert("n/0"), answered.as("afterwards"));
  CHECK(answered.results.at("afterwards").error().code == ErrorCode::fenced);
}

TEST_CASE("a batch is answered once all of its steps are decided, each in its place") {
  InstanceVolume volume;
  const Running a = volume.start();
  need(a->run_repeatable({"Inode.50", "create", {}, {mutation::CreateExclusive{}}}));
  a.client->set_hook(once_on("insert", {Fault::Kind::hold}));
  std::optional<std::vector<Result<StepResult>>> results;
  std::vector<MetaTxn> txns{insert("n/1"),
                            {"Inode.50", "touch", {guard::KeyPresent{"k"}}, {mutation::SetKey{"k", "v"}}},
                            {"Inode.51", "touch", {}, {mutation::SetKey{"k", "v"}}},
                            insert("n/1", "again")};
  a->run_async(std::move(txns), [&](auto all) { results = std::move(all); });
  CHECK_FALSE(results.has_value());
  a.client->release_all();
  REQUIRE(results.has_value());
  REQUIRE(results->size() == 4);
  CHECK(need((*results)[0]).decided == Decided::applied);
  CHECK(need((*results)[1]).decided == Decided::refused);
  CHECK((*results)[2].error().code == ErrorCode::not_found);
  CHECK(need((*results)[3]).decided == Decided::refused);
  results.reset();
  a->run_async(std::vector<MetaTxn>{}, [&](auto all) { results = std::move(all); });
  REQUIRE(results.has_value());
  CHECK(results->empty());
}

TEST_CASE("a step in flight holds a liveness poll's answer back, as a thread of its own did") {
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  const auto before = a->next_token().number;
  a.client->set_hook(once_on("insert", {Fault::Kind::hold}));
  Answered answered;
  a->run_async(insert("n/1"), answered.as("insert"));
  const auto lowest = [&] {
    const auto poll = need(b->poll_liveness({}));
    return std::ranges::find(poll.members, a->id(), &Member::id)->lowest_running;
  };
  CHECK(lowest() == before + 1);
  a.client->release_all();
  CHECK(lowest() > before + 1);
}

TEST_CASE("a read is sent again until it is answered, and tells of a fence") {
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  int sent = 0;
  a.client->set_hook(
      [&](const StepInfo&) { return ++sent < 3 ? Fault{Fault::Kind::lost_answer_not_applied} : Fault{}; });
  std::optional<Result<MetaSnapshot>> answer;
  const auto read = [&] { a->reader()({.object = directory}, [&](auto snapshot) { answer = std::move(snapshot); }); };
  read();
  REQUIRE(answer.has_value());
  CHECK(answer->has_value());
  CHECK(a.client->counts() == StepCounts{.queries = 3});
  need(b->evict(a->id()));
  need(b->query({.object = directory}));
  read();
  CHECK(answer->error().code == ErrorCode::fenced);
  CHECK(a->fenced());
}

TEST_CASE("an instance ends though the store does not answer its reads, and tells who still wants to know") {
  InstanceVolume volume;
  Running a = volume.start();
  a.client->set_hook(
      [](const StepInfo& info) { return info.kind == StepKind::query ? Fault{Fault::Kind::hold} : Fault{}; });
  std::optional<Result<MetaSnapshot>> answer;
  a->reader()({.object = directory}, [&](auto snapshot) { answer = std::move(snapshot); });
  REQUIRE(a.client->wait_for_held(1));
  auto ended = std::async(std::launch::async, [&a] { a.instance.reset(); });
  CHECK(ended.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  a.client->release_all();
  ended.get();
  REQUIRE(answer.has_value());
  REQUIRE_FALSE(answer->has_value());
  CHECK(answer->error().code == ErrorCode::interrupted);
}

TEST_CASE("an instance ends once its steps are decided: what they read back is waited for") {
  InstanceVolume volume;
  Running a = volume.start();
  a.client->set_hook([](const StepInfo& info) {
    if (info.kind == StepKind::query) return Fault{Fault::Kind::hold};
    return info.step == "insert" ? Fault{Fault::Kind::lost_answer_applied} : Fault{};
  });
  std::promise<void> is_ending;
  a->reader()({.object = format::super_object}, [&](const auto&) { is_ending.set_value(); });
  std::optional<Result<StepResult>> decided;
  a->run_async(insert("n/1"), [&](auto result) { decided = std::move(result); });
  REQUIRE(a.client->wait_for_held(2));
  auto ended = std::async(std::launch::async, [&a] { a.instance.reset(); });
  CHECK(is_ending.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  a.client->release_all();
  ended.get();
  REQUIRE(decided.has_value());
  CHECK(need(*decided).decided == Decided::applied);
}

}  // namespace
}  // namespace lccfs
