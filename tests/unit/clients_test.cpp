// SPDX-License-Identifier: LGPL-2.1-or-later
// Who uses a volume, and barring one of them.
#include "lccfs/volume.h"
#include "support/catch.h"
#include "support/instances.h"
#include "support/namespace_calls.h"

namespace lccfs {
namespace {

using State = format::InstanceRecord::State;
using test::error_of;
using test::InstanceVolume;
using test::need;

struct Volume : InstanceVolume {
  std::shared_ptr<ScriptedClient> admin = cluster->new_client();

  auto clients() { return need(describe_clients(*admin)); }
  auto evict(InstanceId whom) { return evict_client(admin, clock, whom.value); }
};

TEST_CASE("clients are told by number, each with what its record says") {
  Volume volume;
  auto first = volume.start({.mount_id = "/mnt/a"});
  auto second = volume.start({.mount_id = "/mnt/b"});
  const auto clients = volume.clients();
  REQUIRE(clients.size() == 2);
  CHECK(clients[0].number == first->id().value);
  CHECK(clients[0].mount_id == "/mnt/a");
  CHECK(clients[1].mount_id == "/mnt/b");
  CHECK(clients[1].is_live);
  CHECK(clients[1].presence == Presence::watching);
  CHECK(volume.admin->counts().applies == 0);
}

TEST_CASE("a client that is evicted does no step any more, and others see that by its record") {
  Volume volume;
  auto evicted = volume.start({.mount_id = "/mnt/a"});
  auto other = volume.start();
  const auto was = need(volume.evict(evicted->id()));
  CHECK(was.is_live);
  CHECK(was.mount_id == "/mnt/a");
  CHECK(volume.record_of(evicted->id())->state == State::fenced);
  CHECK(error_of(evicted->end()) == ErrorCode::fenced);
  need(other->log_inode(Ino{7}));
  CHECK(volume.clients().size() == 2);  // the one that evicted it is gone
}

TEST_CASE("who has ended or is fenced is left as it is") {
  Volume volume;
  auto client = volume.start();
  need(client->log_inode(Ino{7}));  // so that its record stays
  need(client->end());
  const auto before = volume.admin->counts().applies;
  CHECK_FALSE(need(volume.evict(client->id())).is_live);
  CHECK(volume.record_of(client->id())->state == State::ended);
  CHECK(volume.admin->counts().applies == before);
  auto fenced = volume.start();
  need(volume.evict(fenced->id()));
  CHECK_FALSE(need(volume.evict(fenced->id())).is_live);
}

TEST_CASE("a number that no client has is not found, and nothing is changed") {
  Volume volume;
  CHECK(error_of(volume.evict(InstanceId{4711})) == ErrorCode::not_found);
  CHECK(volume.admin->counts().applies == 0);
}

TEST_CASE("where the store bars nobody, a client stays as it was, and no trace of the attempt is left") {
  Volume volume;
  auto client = volume.start();
  volume.admin->set_hook([](const StepInfo& info) {
    return info.kind == StepKind::fence ? Fault{Fault::Kind::fail, ErrorCode::permission_denied} : Fault{};
  });
  CHECK(error_of(volume.evict(client->id())) == ErrorCode::permission_denied);
  CHECK(volume.record_of(client->id())->state == State::live);
  CHECK(volume.clients().size() == 1);
}

}  // namespace
}  // namespace lccfs
