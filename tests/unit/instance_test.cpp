// SPDX-License-Identifier: LGPL-2.1-or-later
// Start and end of instances, and their queue.
#include "instance/instance.h"

#include <algorithm>
#include <fstream>
#include <future>
#include <sstream>

#include "base/log.h"
#include "support/catch.h"
#include "support/hooks.h"
#include "support/instances.h"
#include "support/temporary_folder.h"

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
  CHECK(need(volume.looker->presence(format::super_object, a.client->identity())) == Presence::watching);
  CHECK(need(volume.looker->presence(format::session_object(a->id()), a.client->identity())) == Presence::watching);
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

/// As `lccfs upgrade` of this or of a later version does.
void set_incompat(InstanceVolume& volume, std::uint64_t bits) {
  auto found = need(volume.looker->query({.object = format::super_object, .xattrs = true}));
  auto super = need(format::decode<format::SuperRecord>(found.xattrs[format::xattr::super]));
  super.incompat |= bits;
  need(volume.looker->apply(txn::set_features(found.version, super)));
}

TEST_CASE("who registers after the volume was upgraded starts with the new features") {
  InstanceVolume volume;
  auto client = volume.cluster->new_client();
  client->set_hook(test::before("add instance record", [&] { set_incompat(volume, format::feature::space_units); }));
  const auto started = need(Instance::start(client, volume.clock, {}));
  CHECK(started->super().has(format::feature::space_units));
  CHECK(volume.record_of(started->id()).has_value());
}

TEST_CASE("who registers after an upgrade that it does not know is refused, and leaves no record") {
  InstanceVolume volume;
  auto client = volume.cluster->new_client();
  client->set_hook(test::before("add instance record", [&] { set_incompat(volume, std::uint64_t{1} << 40); }));
  const auto started = Instance::start(client, volume.clock, {});
  REQUIRE(!started);
  CHECK(started.error().code == ErrorCode::unsupported);
  const auto super = need(volume.looker->query({.object = format::super_object, .ranges = {{"s/", ""}}}));
  CHECK(super.ranges.front().entries.empty());
}

TEST_CASE("a registration that is run again after an upgrade is done") {
  InstanceVolume volume;
  auto client = volume.cluster->new_client();
  const auto runs = std::make_shared<unsigned>(0);
  client->set_hook([&volume, runs](const StepInfo& info) -> Fault {
    if (info.step != "add instance record") return {};
    if (++*runs == 1) return {Fault::Kind::lost_answer_applied};
    set_incompat(volume, format::feature::space_units);
    return {};
  });
  const auto started = need(Instance::start(client, volume.clock, {}));
  CHECK(*runs == 2);
  CHECK(volume.record_of(started->id())->state == InstanceRecord::State::live);
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

TEST_CASE("an inode that may have no name gets an item; only if there is none its range stays") {
  InstanceVolume volume;
  const Running a = volume.start();
  const bool queue_works = GENERATE(true, false);
  const Ino in_doubt = need(a->allocate_ino());
  if (!queue_works) a.client->set_hook(test::once_on("log queue items", {Fault::Kind::fail, ErrorCode::io}));
  a->leave_to_collector(in_doubt);
  while (volume.queue_of(a->id(), QueueItem::Kind::range).size() == 1) need(a->allocate_ino());
  need(a->end());
  const auto ranges = volume.queue_of(a->id(), QueueItem::Kind::range);
  const auto inodes = volume.queue_of(a->id(), QueueItem::Kind::inode);
  CHECK(ranges.size() == (queue_works ? 0 : 1));
  CHECK(inodes.size() == (queue_works ? 1 : 0));
  if (!queue_works) CHECK(covers(ranges, in_doubt));
}

TEST_CASE("items that nobody waits for go in few writes, all of them before the end, and their range stays, too") {
  InstanceVolume volume;
  const Running a = volume.start();
  const std::vector inodes{need(a->allocate_ino()), need(a->allocate_ino()), need(a->allocate_ino())};
  a.client->reset_record();
  a.client->set_hook(test::always_on("log queue items", {Fault::Kind::hold}));
  for (const Ino one : inodes) a->leave_to_collector_async(one);
  a->leave_to_collector_async(root_ino);  // which it has not made
  auto ended = std::async(std::launch::async, [&a] { return a->end(); });
  REQUIRE(a.client->wait_for_held(1));
  a.client->set_hook(nullptr);
  a.client->release_all();
  need(ended.get());
  CHECK(std::ranges::count(a.client->trace(), "log queue items " + format::session_object(a->id())) == 2);
  CHECK(volume.queue_of(a->id(), QueueItem::Kind::inode).size() == 3);
  CHECK(volume.queue_of(a->id(), QueueItem::Kind::range).size() == 1);
}

TEST_CASE("a step that failed for lack of space keeps no range intent") {
  InstanceVolume volume;
  const Running a = volume.start();
  a.client->set_hook(test::once_on("insert", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(!a->run({format::inode_object(root_ino), "insert", {}, {mutation::SetKey{"n/1", "1"}}}));
  need(a->end());
  CHECK(!volume.queue_of(a->id()));
}

/// Within an operation each.
void use_up_a_range(Instance& instance, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const Instance::Operation running(instance);
    need(instance.allocate_ino());
  }
}

TEST_CASE("a range intent is dropped once it is used up and nothing older runs") {
  constexpr unsigned first_count = 256, further_count = 4096;
  InstanceVolume volume;
  const Running a = volume.start();
  const auto ranges = [&] { return volume.queue_of(a->id(), QueueItem::Kind::range).size(); };
  SECTION("at the next range but one: the operation that takes a range began before the last was used up") {
    use_up_a_range(*a.instance, first_count + 5 * further_count + 1);
    CHECK(ranges() <= 2);
  }
  SECTION("not while an operation runs that began before") {
    auto older = std::make_optional<Instance::Operation>(*a.instance);
    const Ino its_own = need(a->allocate_ino());
    use_up_a_range(*a.instance, first_count + 2 * further_count);
    CHECK(covers(volume.queue_of(a->id(), QueueItem::Kind::range), its_own));
    older.reset();
    use_up_a_range(*a.instance, further_count);
    CHECK_FALSE(covers(volume.queue_of(a->id(), QueueItem::Kind::range), its_own));
    CHECK(ranges() <= 2);
  }
  SECTION("of numbers that no operation took, at the end") {
    for (unsigned i = 0; i < first_count + 2 * further_count; ++i) need(a->allocate_ino());
    CHECK(ranges() == 3);
  }
  need(a->end());
  CHECK(!volume.queue_of(a->id()));
}

TEST_CASE("an end that is cut anywhere leaves an instance that others find to be expired") {
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
    CHECK(test::time_until_over(*b.instance, a->id()) <= std::chrono::seconds(61));
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

TEST_CASE("directory items that come while others are logged go in one write, and fail with it") {
  InstanceVolume volume;
  const Running a = volume.start();
  std::vector<std::string> told;
  const auto rely_on = [&](std::uint64_t directory) {
    a->rely_on_directory_async(Ino{directory}, [&told, directory](const Result<>& logged) {
      told.push_back(std::to_string(directory) + (logged ? "" : " failed"));
    });
  };
  a.client->set_hook([](const StepInfo&) { return Fault{Fault::Kind::hold}; });
  rely_on(70);
  rely_on(71);
  rely_on(72);
  CHECK(told.empty());
  SECTION("one write for those that waited") {
    a.client->release();
    CHECK(told == std::vector<std::string>{"70"});
    rely_on(73);
    a.client->release();
    a.client->set_hook(nullptr);
    a.client->release();
    CHECK(told == std::vector<std::string>{"70", "71", "72", "73"});
    CHECK(a.client->counts() == StepCounts{.applies = 3});
    CHECK(volume.queue_of(a->id(), QueueItem::Kind::directory).size() == 4);
  }
  SECTION("a failed one") {
    a.client->set_hook([](const StepInfo&) { return Fault{Fault::Kind::fail, ErrorCode::no_space}; });
    a.client->release();
    CHECK(told == std::vector<std::string>{"71 failed", "72 failed", "70"});
    a.client->set_hook(nullptr);
    rely_on(71);
    CHECK(told.back() == "71");
    CHECK(volume.queue_of(a->id(), QueueItem::Kind::directory).size() == 2);
  }
}

TEST_CASE("an instance whose session object is refused leaves no record to be fenced") {
  InstanceVolume volume;
  const auto client = volume.cluster->new_client();
  client->set_hook(test::once_on("make session", {Fault::Kind::fail, ErrorCode::permission_denied}));
  const auto started = Instance::start(client, volume.clock, {});
  REQUIRE(!started);
  CHECK(started.error().code == ErrorCode::permission_denied);
  volume.cluster->with_objects([](scripted::Objects& objects) {
    const auto& super = objects.metadata().at(format::super_object);
    for (const auto& [key, value] : super.keys) CHECK_FALSE(key.starts_with("s/"));
  });
}

TEST_CASE("an inode item and its directory item go out in one write") {
  InstanceVolume volume;
  const Running a = volume.start();
  need(a->log_inode_and_directories(Ino{80}, std::array{Ino{70}}));
  CHECK(a.client->counts() == StepCounts{.applies = 1});
  need(a->log_inode_and_directories(Ino{81}, std::array{Ino{70}}));
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

/// A key that may only read.
Fault changes_are_denied(const StepInfo& info) {
  const bool reads = info.kind == StepKind::query || info.kind == StepKind::read;
  return reads ? Fault{} : Fault{Fault::Kind::fail, ErrorCode::permission_denied};
}

TEST_CASE("a read-only instance that may write nothing starts and ends without a trace") {
  InstanceVolume volume;
  const auto client = volume.cluster->new_client();
  client->set_hook(changes_are_denied);
  const auto a = need(Instance::start(client, volume.clock, {.mount_id = "", .read_only = true}));
  CHECK(!a->recorded());
  const Running b = volume.start();
  CHECK(need(a->ask(b->id(), {format::Question::Kind::store_attributes, root_ino, false})) ==
        Instance::AskResult::nobody);
  CHECK(!need(a->ensure_expired(b->id())));
  need(a->end());
  const auto super = need(volume.looker->query({.object = format::super_object, .ranges = {{"s/", "", 16}}}));
  CHECK(super.ranges.front().entries.size() == 1);  // of b
}

TEST_CASE("an instance that wants to write and may not does not start") {
  InstanceVolume volume;
  const auto client = volume.cluster->new_client();
  client->set_hook(changes_are_denied);
  const auto started = Instance::start(client, volume.clock, {});
  REQUIRE(!started);
  CHECK(started.error().code == ErrorCode::permission_denied);
}

TEST_CASE("an instance that may not fence starts only if it is read-only") {
  InstanceVolume volume;
  const auto client = volume.cluster->new_client();
  client->forbid_fencing();
  const auto writer = Instance::start(client, volume.clock, {});
  REQUIRE(!writer);
  CHECK(writer.error().code == ErrorCode::permission_denied);
  const auto super = need(volume.looker->query({.object = format::super_object, .ranges = {{"s/", "", 16}}}));
  CHECK(super.ranges.front().entries.empty());
  need(need(Instance::start(client, volume.clock, {.mount_id = "", .read_only = true}))->end());
}

TEST_CASE("a fence that is refused is logged, and leaves the other's record live") {
  InstanceVolume volume;
  const Running other = volume.start(), me = volume.start();
  me.client->forbid_fencing();
  const test::TemporaryFolder folder;
  REQUIRE(log::to_file(folder / "log").empty());
  const auto refused = me->evict(other->id());
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::permission_denied);
  CHECK(volume.record_of(other->id())->state == InstanceRecord::State::live);
  std::stringstream lines;
  lines << std::ifstream(folder / "log").rdbuf();
  CHECK_THAT(lines.str(), Catch::Contains("instance " + std::to_string(other->id().value)) &&
                              Catch::Contains("is to be fenced, and is not: this client may not fence"));
}

}  // namespace
}  // namespace lccfs
