// SPDX-License-Identifier: LGPL-2.1-or-later
// What instances answer to a liveness poll: how far they have come, and what is open.
#include <thread>

#include "support/catch.h"
#include "support/instances.h"

namespace lccfs {
namespace {

using format::QueueItem;
using test::InstanceVolume;
using test::need;
using test::Running;

Member member(const PollResult& poll, const Running& of) {
  for (const auto& one : poll.members) {
    if (one.id == of->id()) return one;
  }
  FAIL("not in the poll");
  return {};
}

std::uint64_t lowest_running(Instance& asker, const Running& of) {
  return member(need(asker.poll_liveness({})), of).lowest_running;
}

TEST_CASE("a liveness poll shows who lives, who has ended and who is silent") {
  InstanceVolume volume;
  auto asker = volume.start();
  auto living = volume.start();
  auto ended = volume.start();
  need(ended->log_items({{QueueItem::Kind::inode, Ino{99}, {}, {}}}));
  need(ended->end());
  auto deaf = volume.start();
  deaf.client->set_deaf(true);
  const auto poll = need(asker->poll_liveness({}));
  CHECK(poll.members.size() == 4);
  CHECK(member(poll, asker).standing == Member::Standing::answered);
  CHECK(member(poll, living).standing == Member::Standing::answered);
  CHECK(member(poll, ended).standing == Member::Standing::expired);
  CHECK(member(poll, deaf).standing == Member::Standing::silent);
  CHECK_FALSE(poll.all_answered());
}

TEST_CASE("who is gone is fenced by a liveness poll, and does no step any more") {
  InstanceVolume volume;
  auto asker = volume.start();
  auto victim = volume.start();
  victim.client->crash();
  const auto found = member(need(asker->poll_liveness({})), victim);
  CHECK(found.standing == Member::Standing::expired);
  CHECK(found.fenced_now);
  CHECK(volume.record_of(victim->id())->state == format::InstanceRecord::State::fenced);
}

TEST_CASE("with nothing running, an instance answers its next number") {
  InstanceVolume volume;
  auto asker = volume.start();
  auto other = volume.start();
  const auto token = other->next_token();
  CHECK(lowest_running(*asker.instance, other) == token.number + 1);
}

TEST_CASE("no number that was drawn since an operation began is retired while it runs") {
  InstanceVolume volume;
  auto asker = volume.start();
  auto other = volume.start();
  auto first = std::make_optional<Instance::Operation>(*other.instance);
  const auto token = other->next_token();
  auto second = std::make_optional<Instance::Operation>(*other.instance);
  const auto later = other->next_token();
  CHECK(lowest_running(*asker.instance, other) <= token.number);
  first.reset();
  CHECK(lowest_running(*asker.instance, other) > token.number);
  CHECK(lowest_running(*asker.instance, other) <= later.number);
  second.reset();
  CHECK(lowest_running(*asker.instance, other) > later.number);
}

TEST_CASE("a directory item is dropped as soon as no operation runs that relies on it, and logged anew") {
  InstanceVolume volume;
  auto asker = volume.start();
  auto other = volume.start();
  auto running = std::make_optional<Instance::Operation>(*other.instance);
  need(other->rely_on_directory(root_ino));
  need(other->rely_on_directory(root_ino));
  CHECK(volume.queue_of(other->id(), QueueItem::Kind::directory).size() == 1);
  running.reset();
  SECTION("relied on again, it is held for as long as that operation runs") {
    running.emplace(*other.instance);
    const auto before = other->next_token();
    need(other->rely_on_directory(root_ino));
    CHECK(volume.queue_of(other->id(), QueueItem::Kind::directory).size() == 1);
    CHECK(lowest_running(*asker.instance, other) < before.number);
    CHECK(lowest_running(*asker.instance, other) < before.number);
    running.reset();
    CHECK(lowest_running(*asker.instance, other) > before.number);
  }
  SECTION("operations that always overlap hold nothing back for longer than each of them runs") {
    for (int i = 0; i < 5; ++i) {
      auto next = std::make_optional<Instance::Operation>(*other.instance);
      const auto since = other->next_token();
      need(other->rely_on_directory(root_ino));
      running = std::nullopt;
      lowest_running(*asker.instance, other);
      running.emplace(*other.instance);
      need(other->rely_on_directory(root_ino));
      next.reset();
      CHECK(lowest_running(*asker.instance, other) > since.number);
    }
  }
  SECTION("dropped, it is logged anew") {
    const auto before = other->next_token();
    CHECK(lowest_running(*asker.instance, other) > before.number);
    need(other->rely_on_directory(root_ino));
    CHECK(volume.queue_of(other->id(), QueueItem::Kind::directory).size() == 2);
  }
}

TEST_CASE("a range intent holds nothing back") {
  InstanceVolume volume;
  auto asker = volume.start();
  auto other = volume.start();
  need(other->allocate_ino());
  const auto token = other->next_token();
  CHECK(lowest_running(*asker.instance, other) > token.number);
}

TEST_CASE("instances say which of the inodes are open there") {
  InstanceVolume volume;
  auto asker = volume.start();
  auto other = volume.start();
  other->set_open_probe([](Ino ino) { return ino == Ino{7}; });
  const auto poll = need(asker->poll_liveness({Ino{6}, Ino{7}}));
  CHECK(poll.is_open(Ino{7}));
  CHECK_FALSE(poll.is_open(Ino{6}));
  other->set_open_probe(nullptr);
  CHECK_FALSE(need(asker->poll_liveness({Ino{7}})).is_open(Ino{7}));
}

TEST_CASE("an instance hears of others' liveness polls, and not of its own") {
  InstanceVolume volume;
  auto one = volume.start();
  auto other = volume.start();
  need(one->poll_liveness({}));
  CHECK(other->last_poll() == volume.clock.elapsed());
  CHECK(one->last_poll() == std::nullopt);
}

TEST_CASE("an instance that has removed names removes its step numbers there when it ends") {
  InstanceVolume volume;
  auto one = volume.start();
  need(one->rely_on_directory(root_ino));
  MetaTxn step{format::inode_object(root_ino), "touch", {}, {mutation::SetKey{"p/9/9.9", "\1"}}};
  need(one->run(step));
  const auto key = format::step_number_key(one->id());
  const MetaRead read{.object = format::inode_object(root_ino), .keys = {key}};
  CHECK(need(volume.looker->query(read)).keys.contains(key));
  need(one->end());
  CHECK_FALSE(need(volume.looker->query(read)).keys.contains(key));
}

TEST_CASE("an instance ends though a directory in which it removed names does not answer") {
  InstanceVolume volume;
  auto one = volume.start();
  need(one->rely_on_directory(root_ino));
  volume.clock.waits_end_at_once = true;
  one.client->set_hook([](const StepInfo& info) {
    return info.object == format::inode_object(root_ino) ? Fault{Fault::Kind::hold} : Fault{};
  });
  need(one->end());
  CHECK(volume.record_of(one->id())->state == format::InstanceRecord::State::ended);
  one.instance.reset();
  one.client->release_all();
}

}  // namespace
}  // namespace lccfs
