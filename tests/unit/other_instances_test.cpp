// SPDX-License-Identifier: LGPL-2.1-or-later
// Instances and each other: which is expired, fences, questions (docs/PROTOCOL.md section 2).
#include <algorithm>
#include <atomic>
#include <thread>

#include "base/forwarding_store.h"
#include "base/mutex.h"
#include "instance/holder.h"
#include "instance/instance.h"
#include "support/catch.h"
#include "support/hooks.h"
#include "support/instances.h"
#include "support/log_lines.h"
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

void read_root(Instance& instance) { need(instance.query({.object = root})); }

std::uint64_t fence_counter(InstanceVolume& volume) {
  auto super = need(volume.looker->query({.object = format::super_object, .xattrs = true}));
  return need(format::decode<format::NumberRecord>(super.xattrs[format::xattr::fences])).value;
}

std::ptrdiff_t count_with(const test::LogLines& lines, const std::string& part) {
  const auto all = lines.all();
  return std::ranges::count_if(all, [&](const std::string& line) { return line.find(part) != std::string::npos; });
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

TEST_CASE("one line tells of a fence that two threads of a client send at once") {
  InstanceVolume volume;
  const Running a = volume.start(), b = volume.start();
  const test::LogLines lines;
  b.client->set_hook(test::before("mark fenced", [&] { need(b->evict(a->id())); }));
  need(b->evict(a->id()));
  CHECK(b.client->counts().fences == 2);
  CHECK(count_with(lines, "fenced instance " + std::to_string(a->id().value)) == 1);
}

TEST_CASE("who is fenced tells it in one line, whatever fails then") {
  InstanceVolume volume({.lazy_fences = false});
  Running a = volume.start();
  const Running b = volume.start();
  const auto number = a->id().value;
  const test::LogLines lines;
  need(b->evict(a->id()));
  CHECK_FALSE(a->run(insert()));
  a->leave_to_collector(Ino{77});
  CHECK_FALSE(a->run(insert()));
  a.instance.reset();  // with its threads
  CHECK(count_with(lines, "instance " + std::to_string(number) + " was fenced: ") == 1);
  CHECK(lines.all().size() == 2);  // and that of who fenced it
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
  CHECK(a->query({.object = root}).error().code == ErrorCode::fenced);
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

/// The store loses that watch of the client. Whether it is set again.
bool is_set_again(InstanceVolume& volume, ScriptedClient& client, const std::string& on) {
  client.lapse_watches([&on](const std::string& object) { return object == on; })();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto watches = [&] { return need(volume.looker->presence(on, client.identity())) == Presence::watching; };
  while (!watches() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  return watches();
}

TEST_CASE("a watch is set again though the other one was lost often, and the own record cannot be read") {
  InstanceVolume volume;
  const Running a = volume.start();
  std::atomic<bool> is_readable = false;
  a.client->set_hook([&is_readable](const StepInfo& info) {
    const bool fails = info.kind == StepKind::query && info.object == format::super_object && !is_readable;
    return fails ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  for (unsigned times = 0; times < 5; ++times) CHECK(is_set_again(volume, *a.client, format::super_object));
  CHECK(is_set_again(volume, *a.client, format::session_object(a->id())));
  is_readable = true;
}

/// Once it flaps, it loses a watch on Super as soon as it is set, some times; then that object does not answer.
class FlappingStore final : public ForwardingStore {
 public:
  explicit FlappingStore(std::shared_ptr<ScriptedClient> client)
      : ForwardingStore(*client), client_(std::move(client)) {}
  void flap() { flaps_left_ = 5; }
  bool is_asked_in_vain() const { return is_asked_in_vain_; }
  void answer() {
    const Lock lock(mutex_);
    flaps_left_ = none;
    changed_.notify_all();
  }
  Result<std::unique_ptr<Watch>> watch(const std::string& object, std::shared_ptr<WatchHandler> handler) override {
    if (object != format::super_object || flaps_left_ == none) return ForwardingStore::watch(object, handler);
    if (flaps_left_ > 0) {
      --flaps_left_;
      auto set = ForwardingStore::watch(object, handler);
      handler->on_lost({ErrorCode::io, "flapping", Outcome::definite});
      return set;
    }
    is_asked_in_vain_ = true;
    Lock lock(mutex_);
    lock.wait(changed_, [this] { return flaps_left_ == none; });
    return ForwardingStore::watch(object, handler);
  }

 private:
  static constexpr int none = -1;
  const std::shared_ptr<ScriptedClient> client_;
  std::atomic<int> flaps_left_ = none;
  std::atomic<bool> is_asked_in_vain_ = false;
  Mutex mutex_;
  std::condition_variable changed_;
};

TEST_CASE("a watch is set again though the other one was lost each time it was set, and then its object is away") {
  InstanceVolume volume;
  const auto client = volume.cluster->new_client();
  const auto store = std::make_shared<FlappingStore>(client);
  const auto a = need(Instance::start(store, volume.clock, {}));
  store->flap();
  client->lapse_watches([](const std::string& object) { return object == format::super_object; })();
  while (!store->is_asked_in_vain()) std::this_thread::yield();
  CHECK(is_set_again(volume, *client, format::session_object(a->id())));
  store->answer();
}

TEST_CASE("a watch that is lost again is set again while Super does not answer a read of the own record") {
  InstanceVolume volume;
  const Running a = volume.start();
  a.client->set_hook([](const StepInfo& info) {
    const bool is_held = info.kind == StepKind::query && info.object == format::super_object;
    return is_held ? Fault{Fault::Kind::hold} : Fault{};
  });
  const auto session = format::session_object(a->id());
  CHECK(is_set_again(volume, *a.client, session));
  REQUIRE(a.client->wait_for_held(1));
  bool are_set = true;
  for (unsigned times = 0; are_set && times < 5; ++times) {
    are_set = is_set_again(volume, *a.client, session) && is_set_again(volume, *a.client, format::super_object);
  }
  CHECK(are_set);
  CHECK(a.client->held().size() == 1);
  SECTION("the record is live") {
    a.client->set_hook(nullptr);
    a.client->release_all();
    CHECK(is_set_again(volume, *a.client, session));
    CHECK_FALSE(a->fenced());
  }
  SECTION("what was read before the last watch was set does not count") {
    const auto key = format::instance_key(a->id());
    a.client->release();
    REQUIRE(a.client->wait_for_held(1));
    need(volume.looker->apply({format::super_object, "take for dead", {}, {mutation::RemoveKey{key}}}));
    a.client->set_hook(nullptr);
    a.client->release_all();
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!a->fenced() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    CHECK(a->fenced());
  }
}

}  // namespace
}  // namespace lccfs
