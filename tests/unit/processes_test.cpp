// SPDX-License-Identifier: LGPL-2.1-or-later
// Processes of this host: who is known to be gone (docs/PROTOCOL.md section 2).
#include "instance/presence.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/forwarding_store.h"
#include "instance/holder.h"
#include "support/catch.h"
#include "support/instances.h"

namespace lccfs {
namespace {

using test::InstanceVolume;
using test::need;
using test::Running;

/// A process that waits for its end, and what its record would be.
class Child {
 public:
  Child() {
    std::array<int, 2> ready{};
    REQUIRE(::pipe(ready.data()) == 0);
    record.host = host_name();
    record.pid = static_cast<std::uint64_t>(::fork());
    if (record.pid == 0) {
      const auto own = system_processes().own();
      const std::uint64_t ticks = own ? own->start_ticks : 0;
      if (::write(ready[1], &ticks, sizeof ticks) != sizeof ticks) ::_exit(1);
      for (;;) ::pause();
    }
    record.process = system_processes().own();
    REQUIRE(record.process.has_value());
    REQUIRE(::read(ready[0], &record.process->start_ticks, sizeof(std::uint64_t)) == sizeof(std::uint64_t));
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Child() {
    kill();
    reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Returns when it is a zombie.
  void kill() {
    if (reaped_) return;
    ::kill(static_cast<pid_t>(record.pid), SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(record.pid), &info, WEXITED | WNOWAIT);
  }
  void reap() {
    if (!std::exchange(reaped_, true)) ::waitpid(static_cast<pid_t>(record.pid), nullptr, 0);
  }

  format::InstanceRecord record;

 private:
  bool reaped_ = false;
};

TEST_CASE("a process of this host is gone when it was killed, whether or not it was waited for") {
  Child child;
  CHECK_FALSE(system_processes().is_gone(child.record));
  child.kill();
  CHECK(system_processes().is_gone(child.record));
  child.reap();
  CHECK(system_processes().is_gone(child.record));
}

TEST_CASE("a process that has got the number of another one does not pass for it") {
  Child child;
  child.record.process->start_ticks += 1;
  CHECK(system_processes().is_gone(child.record));
}

TEST_CASE("a process knows that it is there itself, and that whoever had its number before it is not") {
  format::InstanceRecord record;
  record.host = host_name();
  record.pid = static_cast<std::uint64_t>(::getpid());
  record.process = system_processes().own();
  REQUIRE(record.process.has_value());
  CHECK_FALSE(system_processes().is_gone(record));
  record.process->start_ticks -= 1;
  CHECK(system_processes().is_gone(record));
}

TEST_CASE("nothing is known of a process elsewhere") {
  Child child;
  child.kill();
  child.reap();
  auto record = child.record;
  SECTION("of another boot") { record.process->boot_id += "0"; }
  SECTION("of another PID namespace") { ++record.process->pid_namespace; }
  SECTION("of another host, a copy of this one") { record.host += "2"; }
  SECTION("of an older version") { record.process = std::nullopt; }
  SECTION("without a number") { record.pid = 0; }
  SECTION("with a number that is none") { record.pid = std::uint64_t{1} << 40; }
  CHECK_FALSE(system_processes().is_gone(record));
}

class PlayedProcesses final : public Processes {
 public:
  std::optional<format::ProcessRecord> own() const override { return format::ProcessRecord{"boot", 1, 2}; }
  bool is_gone(const format::InstanceRecord& record) const override { return gone && record.process == own(); }
  bool gone = false;
};

TEST_CASE("who is known to be gone on this host is fenced at the first look, though the store still sees its watches") {
  InstanceVolume volume({.dead_clients_watch = true});
  PlayedProcesses processes;
  const InstanceOptions options{.mount_id = "", .processes = &processes};
  const Running dead = volume.start(options);
  const Running other = volume.start(options);
  CHECK(volume.record_of(dead->id())->process == processes.own());
  dead.client->crash();
  CHECK_FALSE(need(other->ensure_expired(dead->id())));
  processes.gone = true;
  const auto began = volume.clock.elapsed();
  CHECK(need(other->ensure_expired(dead->id())));
  CHECK(volume.clock.elapsed() == began);
  CHECK(other.client->counts().fences == 1);
  CHECK(volume.record_of(dead->id())->state == format::InstanceRecord::State::fenced);
}

/// Whose addresses show that other clients are not of this host.
class StoreOfSeveralHosts final : public ForwardingStore {
 public:
  explicit StoreOfSeveralHosts(std::shared_ptr<ScriptedClient> client)
      : ForwardingStore(*client), client_(std::move(client)) {}
  bool may_be_of_this_host(const Bytes& identity) const override { return identity == client_->identity(); }

 private:
  const std::shared_ptr<ScriptedClient> client_;
};

TEST_CASE("a process that is not on this host proves nothing of a client with another host's address") {
  InstanceVolume volume;
  PlayedProcesses processes;  // of a machine that was restored from the same image, and has kept its name
  const InstanceOptions options{.mount_id = "", .processes = &processes};
  const Running other = volume.start(options);
  const auto client = volume.cluster->new_client();
  const auto me = need(Instance::start(std::make_shared<StoreOfSeveralHosts>(client), volume.clock, options));
  processes.gone = true;
  CHECK(need(me->look_at(other->id())) == Instance::Seen::watching);
  CHECK(need(me->look_at_record(other->id())) == Instance::Seen::absent);
  CHECK(need(presence_of(me->store(), processes, other->id(), *volume.record_of(other->id()))) == Presence::watching);
  CHECK(client->counts().fences == 0);
  CHECK(volume.record_of(other->id())->state == format::InstanceRecord::State::live);
}

TEST_CASE("who waits for a holder whose session object does not answer sees what else shows that it is gone") {
  InstanceVolume volume;
  PlayedProcesses processes;
  const InstanceOptions options{.mount_id = "", .processes = &processes};
  const Running dead = volume.start(options);
  const Running other = volume.start(options), third = volume.start(options);
  dead.client->crash();
  const auto session = format::session_object(dead->id());
  volume.cluster->set_away([session](const std::string& object) { return object == session; });
  other.client->set_hook([](const StepInfo& info) {  // the question is given up
    return info.kind == StepKind::notify ? Fault{Fault::Kind::fail, ErrorCode::timed_out} : Fault{};
  });
  unsigned asked_in_vain = 0;
  const auto settle = [&] {
    return need(settle_holder(*other.instance, dead->id(), {}, [&]() -> Result<bool> { return ++asked_in_vain < 10; }));
  };
  SECTION("nothing does") {
    CHECK(settle() == Settled::answered);
    CHECK(asked_in_vain == 10);
    CHECK(other.client->counts().fences == 0);
  }
  SECTION("its process is no more") {
    processes.gone = true;
    CHECK(settle() == Settled::expired);
    CHECK(volume.record_of(dead->id())->state == format::InstanceRecord::State::fenced);
  }
  SECTION("somebody else has fenced it") {
    need(third->evict(dead->id()));
    CHECK(settle() == Settled::expired);
    CHECK(other.client->counts().fences == 0);
  }
}

}  // namespace
}  // namespace lccfs
