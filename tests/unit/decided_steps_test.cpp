// SPDX-License-Identifier: LGPL-2.1-or-later
// Guarded steps are decided (docs/ORDERING.md, rule 5), whatever becomes of their answers.
#include <future>
#include <thread>

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
  return need(volume.looker->query({.object = directory, .ranges = {}, .keys = {key}})).keys.contains(key);
}

std::uint64_t version_of(InstanceVolume& volume) {
  return need(volume.looker->query({.object = directory, .ranges = {}, .keys = {}})).version;
}

TEST_CASE("a step that goes through is applied, and tells the version behind it") {
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
  CHECK(!volume.looker->query({.object = "Inode.77", .ranges = {}, .keys = {}}));
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

TEST_CASE("one instance has one guarded step in flight on an object, and others go on beside it") {
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
  CHECK(others.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  a.client->release_all();
  hung.join();
}

}  // namespace
}  // namespace lccfs
