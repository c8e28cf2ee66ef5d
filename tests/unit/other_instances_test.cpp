// SPDX-License-Identifier: LGPL-2.1-or-later
// Instances and each other: which is expired, fences, questions (docs/PROTOCOL.md section 2).
#include <atomic>
#include <thread>

#include "instance/holder.h"
#include "instance/instance.h"
#include "support/catch.h"
#include "support/hooks.h"
#include "support/instances.h"
#include "txn/volume_txn.h"

namespace lccfs {
namespace {

using format::Answer;
using format::InstanceRecord;
using format::Question;
using test::InstanceVolume;
using test::need;
using test::once_on;
using test::Running;
using test::time_until_over;

const std::string root = format::inode_object(root_ino);

MetaTxn insert() { return {root, "insert", {}, {mutation::SetKey{"n/1", "1"}}}; }

void read_root(Instance& instance) { need(instance.query({.object = root, .ranges = {}, .keys = {}})); }

std::uint64_t fence_counter(InstanceVolume& volume) {
  auto super = need(volume.looker->query({.object = format::super_object, .xattrs = true, .ranges = {}, .keys = {}}));
  return need(format::decode<format::NumberRecord>(super.xattrs[format::xattr::fences])).value;
}

/// An instance that died with a step in flight.
Running dead_with_late_step(InstanceVolume& volume) {
  Running a = volume.start();
  a.client->set_hook(once_on("insert", {Fault::Kind::crash_and_land_later}));
  CHECK(!a->run(insert()));
  return a;
}

TEST_CASE("who watches is not expired, however old its record is") {
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  volume.clock.advance(std::chrono::hours(1));
  CHECK(!need(b->ensure_expired(a->id())));
  CHECK(fence_counter(volume) == 0);
  CHECK(a->run(insert()).has_value());
}

TEST_CASE("who has lost one of its two watches is not expired") {
  for (const std::string& watched : {std::string(format::super_object), format::session_object(InstanceId{900})}) {
    InstanceVolume volume;
    const Running other = volume.start();
    const auto client = volume.cluster->new_client();
    InstanceRecord record;
    record.since = volume.clock.wall_time();
    record.identity = client->identity();
    need(client->apply(txn::add_instance_record(InstanceId{900}, encode(record))));
    need(client->apply(txn::make_session(InstanceId{900})));
    const auto watch = need(client->watch(watched, std::make_shared<test::DeafHandler>()));
    volume.clock.advance(std::chrono::hours(1));
    CHECK(!need(other->ensure_expired(InstanceId{900})));
    CHECK(fence_counter(volume) == 0);
  }
}

TEST_CASE("who crashed is expired when it was seen absent for a minute, and is then fenced and marked") {
  InstanceVolume volume;
  const Running a = dead_with_late_step(volume);
  const Running b = volume.start();
  volume.clock.advance(std::chrono::hours(1));  // however old its record is
  const auto took = time_until_over(*b.instance, a->id());
  CHECK(took >= gone_after);
  CHECK(took <= gone_after + 2 * look_again_after);
  CHECK(volume.record_of(a->id())->state == InstanceRecord::State::fenced);
  CHECK(volume.record_of(a->id())->fence_number == 1);
  CHECK(fence_counter(volume) == 1);
  CHECK(b->newest_fence() == 1);
  read_root(*b.instance);
  CHECK(a.client->land_late_steps() == 0);
}

TEST_CASE("who relies on another's fence syncs fences before it reads") {
  InstanceVolume volume;
  const Running a = dead_with_late_step(volume);
  const Running b = volume.start();
  const Running c = volume.start();
  time_until_over(*b.instance, a->id());
  unsigned late_steps_that_land = 0;
  SECTION("by asking whether the dead one is expired") { CHECK(need(c->ensure_expired(a->id()))); }
  SECTION("by seeing the fence's number on an inode") { need(c->see_fence(1)); }
  SECTION("without either, the late step still lands after the read") { late_steps_that_land = 1; }
  read_root(*c.instance);
  CHECK(a.client->land_late_steps() == late_steps_that_land);
}

TEST_CASE("a damaged number of a fence on an inode does not stand for fences to come") {
  InstanceVolume volume;
  const Running a = dead_with_late_step(volume);
  const Running b = volume.start();
  const Running c = volume.start();
  need(c->see_fence(~std::uint64_t{0}));
  CHECK(c->newest_fence() == 0);
  time_until_over(*b.instance, a->id());
  need(c->see_fence(1));
  read_root(*c.instance);
  CHECK(a.client->land_late_steps() == 0);
}

TEST_CASE("nobody is fenced under a number that would begin the count anew") {
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  volume.cluster->with_objects([](scripted::Objects& objects) {
    objects.metadata().at("Super").xattrs["fences"] = encode(format::NumberRecord{format::fences_end - 1});
  });
  const auto evicted = b->evict(a->id());
  REQUIRE(!evicted);
  CHECK(evicted.error().code == ErrorCode::corrupt);
  CHECK(evicted.error().context.find("run lccfs-fsck") != std::string::npos);
  CHECK(fence_counter(volume) == format::fences_end - 1);
}

TEST_CASE("a fence that was seen costs nothing the next time") {
  InstanceVolume volume;
  const Running a = dead_with_late_step(volume);
  const Running b = volume.start();
  time_until_over(*b.instance, a->id());
  const Running c = volume.start();
  CHECK(c->newest_fence() == 1);  // who starts knows of all fences there are
}

TEST_CASE("an instance without a record, or with one that has ended, is expired without a fence") {
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  const bool with_items = GENERATE(false, true);
  if (with_items) need(a->rely_on_directory(root_ino));
  need(a->end());
  CHECK(need(b->ensure_expired(a->id())));
  CHECK(b.client->counts().fences == 0);
  CHECK(fence_counter(volume) == 0);
}

TEST_CASE("a fence is completed whichever of its steps is cut, lost or run twice") {
  const auto kind =
      GENERATE(Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash, Fault::Kind::applied_twice,
               Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  const std::string step = GENERATE("fence", "mark fenced");
  const bool crashes = kind == Fault::Kind::not_applied_and_crash || kind == Fault::Kind::applied_and_crash;
  if (step == "fence" && !crashes) return;
  InstanceVolume volume;
  const Running a = dead_with_late_step(volume);
  const Running b = volume.start();
  const Running c = volume.start();
  b.client->set_hook(once_on(step, {kind}));
  INFO(describe(kind) << " at " << step);
  Result<bool> expired = false;
  while (expired && !*expired) {
    expired = b->ensure_expired(a->id());
    volume.clock.sleep_for(look_again_after);
  }
  CHECK(expired.has_value() == !crashes);
  time_until_over(*c.instance, a->id());
  CHECK(volume.record_of(a->id())->state == InstanceRecord::State::fenced);
  CHECK(fence_counter(volume) == 1);
  read_root(*c.instance);
  CHECK(a.client->land_late_steps() == 0);
}

TEST_CASE("two who fence the same instance count one fence") {
  InstanceVolume volume;
  const Running a = dead_with_late_step(volume);
  const Running b = volume.start();
  const Running c = volume.start();
  b.client->set_hook(test::before("mark fenced", [&] { time_until_over(*c.instance, a->id()); }));
  time_until_over(*b.instance, a->id());
  CHECK(fence_counter(volume) == 1);
}

TEST_CASE("who is fenced while the fence of another is counted is fenced once, and marked all the same") {
  InstanceVolume volume;
  const Running a = volume.start(), b = volume.start(), c = volume.start(), d = volume.start();
  c.client->set_hook(test::before("mark fenced", [&] { need(d->evict(b->id())); }));
  need(c->evict(a->id()));
  CHECK(c.client->counts().fences == 1);
  CHECK(volume.record_of(a->id())->state == InstanceRecord::State::fenced);
  CHECK(volume.record_of(a->id())->fence_number == 2);
  CHECK(volume.record_of(b->id())->fence_number == 1);
}

TEST_CASE("an evicted instance answers fenced to everything") {
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  need(b->evict(a->id()));
  read_root(*b.instance);
  const auto step = a->run(insert());
  REQUIRE(!step);
  CHECK(step.error().code == ErrorCode::fenced);
  CHECK(a->fenced());
  CHECK(a->query({.object = root, .ranges = {}, .keys = {}}).error().code == ErrorCode::fenced);
  CHECK(a->rely_on_directory(root_ino).error().code == ErrorCode::fenced);
  CHECK(a->run_repeatable(insert()).error().code == ErrorCode::fenced);
  CHECK(a->ask(b->id(), {}).error().code == ErrorCode::fenced);
  CHECK(a->end().error().code == ErrorCode::fenced);
}

TEST_CASE("a read-only instance fences nobody") {
  InstanceVolume volume;
  const Running a = dead_with_late_step(volume);
  const Running reader = volume.start({.mount_id = "", .read_only = true});
  CHECK(time_until_over(*reader.instance, a->id()) > 2 * gone_after);
  CHECK(reader.client->counts().fences == 0);
}

TEST_CASE("a question reaches the other instance's handler, and its answer comes back") {
  const auto kind = GENERATE(Answer::Kind::done, Answer::Kind::busy);
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  const Question question{Question::Kind::store_attributes, Ino{42}, true};
  std::optional<Question> seen;
  a->set_question_handler([&](const Question& asked) {
    seen = asked;
    return Answer{kind};
  });
  const auto expected = kind == Answer::Kind::done ? Instance::AskResult::done : Instance::AskResult::busy;
  CHECK(need(b->ask(a->id(), question)) == expected);
  CHECK(seen == question);
  a->set_question_handler(nullptr);
}

TEST_CASE("who is stopped is silent; where somebody is gone or was never there, nobody is asked") {
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  a->set_question_handler([](const Question&) { return Answer{}; });
  InstanceId asked = a->id();
  auto expected = Instance::AskResult::nobody;
  SECTION("stopped") {
    a.client->set_deaf(true);
    expected = Instance::AskResult::silent;
  }
  SECTION("crashed") { a.client->crash(); }
  SECTION("ended") { need(a->end()); }
  SECTION("never there") { asked = InstanceId{99999}; }
  CHECK(need(b->ask(asked, {})) == expected);
}

TEST_CASE("who was fenced answers no question, though it watches") {
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  a->set_question_handler([](const Question&) { return Answer{Answer::Kind::busy}; });
  const auto record = format::instance_key(a->id());
  need(volume.looker->apply({format::super_object, "take for dead", {}, {mutation::RemoveKey{record}}}));
  a.client->lapse_watches([](const std::string& object) { return object == format::super_object; })();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!a->fenced()) {
    REQUIRE(std::chrono::steady_clock::now() < give_up);
    std::this_thread::yield();
  }
  CHECK(need(b->ask(a->id(), {})) == Instance::AskResult::silent);
  a->set_question_handler(nullptr);
}

TEST_CASE("a handler may do steps on the store while the asker waits") {
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  a->set_question_handler([&](const Question&) {
    need(a->run(insert()));
    return Answer{};
  });
  CHECK(need(b->ask(a->id(), {})) == Instance::AskResult::done);
}

TEST_CASE("who was told busy at once asks later each time, and soon again where the answer took its time") {
  using std::chrono::milliseconds;
  BusyPause pause;
  for (const int expected : {20, 40, 80, 160, 320, 500, 500})
    CHECK(pause.next(milliseconds(1)) == milliseconds(expected));
  for (int i = 0; i < 3; ++i) CHECK(pause.next(milliseconds(500)) == milliseconds(20));
  CHECK(pause.next(milliseconds(1)) == milliseconds(40));
}

TEST_CASE("an instance that loses its watches sets them again and continues") {
  InstanceVolume volume;
  const Running a = volume.start();
  const auto session = format::session_object(a->id());
  a.client->lose_watches();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (need(volume.looker->presence(session, a.client->identity())) != Presence::watching ||
         need(volume.looker->presence(format::super_object, a.client->identity())) != Presence::watching) {
    REQUIRE(std::chrono::steady_clock::now() < give_up);
    std::this_thread::yield();
  }
  CHECK(a->run(insert()).has_value());
  CHECK(!a->fenced());
}

TEST_CASE("an instance that sets its watch again reads its own record until the store answers") {
  InstanceVolume volume;
  const Running a = volume.start();
  auto fenced = *volume.record_of(a->id());
  const auto live = encode(fenced);
  fenced.state = InstanceRecord::State::fenced;
  fenced.fence_number = fence_counter(volume) + 1;
  // It was barred, too, and an operator has let it in again.
  need(volume.looker->apply(txn::fence_instance_record(a->id(), live, encode(fenced), fenced.fence_number - 1)));
  constexpr unsigned watches = 2;  // the record is read for each
  std::atomic<unsigned> reads = 0;
  a.client->set_hook([&reads](const StepInfo& info) {
    if (info.kind != StepKind::query || info.object != format::super_object) return Fault{};
    return reads++ < watches ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  a.client->lose_watches();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!a->fenced() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  CHECK(a->fenced());
  CHECK(reads > watches);
}

}  // namespace
}  // namespace lccfs
