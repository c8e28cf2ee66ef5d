// SPDX-License-Identifier: LGPL-2.1-or-later
// Start and end of instances, and their queue.
#include "instance/instance.h"

#include "support/catch.h"
#include "support/hooks.h"
#include "support/instances.h"

namespace lccfs {
namespace {

using format::InstanceRecord;
using format::QueueItem;
using test::InstanceVolume;
using test::need;
using test::NthMutation;
using test::Running;

bool covers(const std::vector<QueueItem>& ranges, Ino ino) {
  return std::ranges::any_of(ranges, [&](const QueueItem& range) { return range.ino <= ino && ino < range.end; });
}

TEST_CASE("a started instance has a number, a live record, a session object, two watches and a range intent") {
  InstanceVolume volume;
  const Running a = volume.start({.mount_id = "/mnt/a"});
  const auto record = volume.record_of(a->id());
  REQUIRE(record.has_value());
  CHECK(record->state == InstanceRecord::State::live);
  CHECK(record->mount_id == "/mnt/a");
  CHECK(record->identity == a.client->identity());
  CHECK(need(volume.looker->is_watching(format::super_object, a.client->identity())));
  CHECK(need(volume.looker->is_watching(format::session_object(a->id()), a.client->identity())));
  CHECK(volume.queue_of(a->id(), QueueItem::Kind::range).size() == 1);
}

TEST_CASE("no two instances have a number in common, with each other or with an inode") {
  InstanceVolume volume;
  const Running a = volume.start();
  const Running b = volume.start();
  std::set<std::uint64_t> numbers{a->id().value, b->id().value, root_ino.value};
  for (int i = 0; i < 10; ++i) {
    numbers.insert(need(a->allocate_ino()).value);
    numbers.insert(need(b->allocate_ino()).value);
  }
  CHECK(numbers.size() == 23);
}

TEST_CASE("there is no instance where there is no volume") {
  test::FakeClock clock;
  const auto started = Instance::start(ScriptedCluster::make()->new_client(), clock, {});
  REQUIRE(!started);
  CHECK(started.error().code == ErrorCode::not_found);
}

TEST_CASE("a volume with unknown features is refused, or can only be read") {
  const bool incompat = GENERATE(true, false);
  InstanceVolume volume;
  format::SuperRecord super;
  (incompat ? super.incompat : super.ro_compat) = std::uint64_t{1} << 40;
  need(volume.looker->apply({format::super_object,
                             "set super",
                             {guard::ObjectExists{}},
                             {mutation::SetXattr{format::xattr::super, encode(super)}}}));
  const auto writer = Instance::start(volume.cluster->new_client(), volume.clock, {});
  REQUIRE(!writer);
  CHECK(writer.error().code == ErrorCode::unsupported);
  const auto reader = Instance::start(volume.cluster->new_client(), volume.clock, {.mount_id = "", .read_only = true});
  CHECK(reader.has_value() == !incompat);
}

TEST_CASE("a start that is cut anywhere keeps nobody else from starting") {
  const auto kind = GENERATE(Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash);
  unsigned cut = 0;
  for (bool reached = true; reached; ++cut) {
    InstanceVolume volume;
    auto victim = volume.cluster->new_client();
    const NthMutation hook(cut, {kind});
    victim->set_hook(hook);
    const auto started = Instance::start(victim, volume.clock, {});
    reached = hook.reached();
    CHECK(started.has_value() == !reached);
    const Running next = volume.start();
    CHECK(next->allocate_ino().has_value());
  }
  CHECK(cut == 5);  // numbers, record, session, intent; and one start that is not cut
}

TEST_CASE("a start succeeds once, whichever step is run twice or loses its answer") {
  const auto kind =
      GENERATE(Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  for (unsigned step = 0; step < 4; ++step) {
    InstanceVolume volume;
    auto client = volume.cluster->new_client();
    client->set_hook(NthMutation(step, {kind}));
    const auto instance = Instance::start(client, volume.clock, {});
    INFO(describe(kind) << " at step " << step);
    REQUIRE(instance.has_value());
    CHECK(volume.record_of((*instance)->id()).has_value());
    CHECK(covers(volume.queue_of((*instance)->id(), QueueItem::Kind::range), need((*instance)->allocate_ino())));
  }
}

TEST_CASE("who is taken for dead while it starts does no step") {
  InstanceVolume volume;
  const Running other = volume.start();
  auto slow = volume.cluster->new_client();
  slow->set_hook(test::before("make session", [&] { need(other->evict(InstanceId{other->id().value + 257})); }));
  const auto started = Instance::start(slow, volume.clock, {});
  REQUIRE(!started);
  CHECK(started.error().code == ErrorCode::fenced);
}

TEST_CASE("an inode number is handed out only when a range intent that covers it is durable") {
  InstanceVolume volume;
  const Running a = volume.start();
  for (int i = 0; i < 256; ++i) need(a->allocate_ino());
  SECTION("a further range is logged first") {
    const Ino next = need(a->allocate_ino());
    CHECK(covers(volume.queue_of(a->id(), QueueItem::Kind::range), next));
    CHECK(a.client->trace() == std::vector<std::string>{"query Alloc", "take numbers Alloc",
                                                        "log queue items " + format::session_object(a->id())});
  }
  SECTION("none is handed out when it cannot be logged") {
    a.client->set_hook(test::once_on("log queue items", {Fault::Kind::fail, ErrorCode::no_space}));
    CHECK(!a->allocate_ino());
    CHECK(covers(volume.queue_of(a->id(), QueueItem::Kind::range), need(a->allocate_ino())));
  }
}

TEST_CASE("an instance with an empty queue ends without a trace") {
  InstanceVolume volume;
  const Running a = volume.start();
  need(a->allocate_ino());
  need(a->end());
  CHECK(!volume.record_of(a->id()));
  CHECK(!volume.queue_of(a->id()));
}

TEST_CASE("an instance whose queue holds items ends as ended, and the items stay") {
  InstanceVolume volume;
  const Running a = volume.start();
  need(a->rely_on_directory(root_ino));
  need(a->end());
  REQUIRE(volume.record_of(a->id()).has_value());
  CHECK(volume.record_of(a->id())->state == InstanceRecord::State::ended);
  CHECK(volume.queue_of(a->id())->size() == 1);
}

TEST_CASE("an end with a step whose outcome nobody knows keeps the range intents") {
  InstanceVolume volume;
  const Running a = volume.start();
  a.client->set_hook(test::once_on("create", {Fault::Kind::fail, ErrorCode::io}));
  CHECK(
      !a->run_repeatable({format::inode_object(need(a->allocate_ino())), "create", {}, {mutation::CreateExclusive{}}}));
  need(a->end());
  CHECK(volume.queue_of(a->id(), QueueItem::Kind::range).size() == 1);
}

TEST_CASE("an end that is cut anywhere leaves an instance that others find to be over") {
  const bool with_items = GENERATE(false, true);
  const auto kind = GENERATE(Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash);
  for (unsigned cut = 0; cut < (with_items ? 2U : 3U); ++cut) {
    InstanceVolume volume;
    const Running a = volume.start();
    const Running b = volume.start();
    if (with_items) need(a->rely_on_directory(root_ino));
    const NthMutation hook(cut, {kind});
    a.client->set_hook(hook);
    CHECK(!a->end());
    CHECK(hook.reached());
    volume.clock.advance(std::chrono::seconds(61));
    CHECK(need(b->ensure_over(a->id())));
    if (with_items) CHECK(volume.queue_of(a->id(), QueueItem::Kind::directory).size() == 1);
  }
}

TEST_CASE("a directory item is logged once, for as long as it is relied on") {
  InstanceVolume volume;
  const Running a = volume.start();
  need(a->rely_on_directory(Ino{70}));
  need(a->rely_on_directory(Ino{70}));
  need(a->rely_on_directory(Ino{71}));
  CHECK(a.client->counts() == StepCounts{.applies = 2});
  CHECK(volume.queue_of(a->id(), QueueItem::Kind::directory).size() == 2);
}

TEST_CASE("an inode item and its directory item go out in one write") {
  InstanceVolume volume;
  const Running a = volume.start();
  need(a->log_inode_and_directory(Ino{80}, Ino{70}));
  CHECK(a.client->counts() == StepCounts{.applies = 1});
  need(a->log_inode_and_directory(Ino{81}, Ino{70}));
  CHECK(a.client->counts() == StepCounts{.applies = 2});
  CHECK(volume.queue_of(a->id(), QueueItem::Kind::directory).size() == 1);
  CHECK(volume.queue_of(a->id(), QueueItem::Kind::inode).size() == 2);
}

TEST_CASE("a directory item whose logging failed is not relied on") {
  InstanceVolume volume;
  const Running a = volume.start();
  a.client->set_hook(test::once_on("log queue items", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(!a->rely_on_directory(Ino{70}));
  need(a->rely_on_directory(Ino{70}));
  CHECK(volume.queue_of(a->id(), QueueItem::Kind::directory).size() == 1);
}

TEST_CASE("a read-only instance writes its record and its session object, and logs nothing") {
  InstanceVolume volume;
  const Running a = volume.start({.mount_id = "", .read_only = true});
  CHECK(volume.record_of(a->id()).has_value());
  CHECK(volume.queue_of(a->id())->empty());
  need(a->end());
  CHECK(!volume.record_of(a->id()));
}

}  // namespace
}  // namespace lccfs
