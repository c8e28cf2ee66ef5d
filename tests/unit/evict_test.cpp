// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs evict on a store that does not answer.
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "cli/commands.h"
#include "support/catch.h"
#include "support/instances.h"
#include "support/log_lines.h"
#include "support/simulated_time.h"

namespace lccfs {
namespace {

using std::chrono::seconds;
using State = format::InstanceRecord::State;

TEST_CASE("evict names the object that the store does not answer for, and bars the client once it answers") {
  const test::LogLines lines;
  test::SimulatedTime time;
  test::SimulatedClock clock(time, {});
  test::InstanceVolume volume;
  const auto client = volume.start();
  volume.cluster->set_away([](const std::string& object) { return object == format::alloc_object; });
  std::atomic<bool> ended = false;
  std::optional<Result<InstanceInfo>> evicted;
  const std::jthread command([&] {
    evicted = cli::evict([&](const StoreOptions&) { return volume.cluster->new_client(); }, clock, client->id().value);
    ended = true;
  });
  time.run_until(seconds(9));
  CHECK(lines.all().empty());
  time.run_until(seconds(12));
  const auto told = lines.all();
  CHECK((told.size() == 1 && told.front().starts_with("slow store operation: query of Alloc has not ended after 1")));
  CHECK_FALSE(ended);
  CHECK(volume.record_of(client->id())->state == State::live);
  volume.cluster->set_away(nullptr);
  REQUIRE(time.run_until([&ended] { return ended.load(); }, seconds(300)));
  CHECK(evicted->has_value());
  CHECK(volume.record_of(client->id())->state == State::fenced);
}

/// Monitors that are away for longer than a step waits, where one does.
Result<std::shared_ptr<ObjectStore>> without_monitors(ScriptedCluster& cluster, const StoreOptions& options) {
  auto client = cluster.new_client();
  client->set_hook([gives_up = options.step_timeout.has_value()](const StepInfo& info) {
    return gives_up && info.kind == StepKind::fence ? Fault{Fault::Kind::fail, ErrorCode::timed_out} : Fault{};
  });
  return client;
}

TEST_CASE("evict bars the client though the monitors answer later than a step of a command is waited for") {
  test::SimulatedTime time;
  test::SimulatedClock clock(time, {});
  test::InstanceVolume volume;
  const auto client = volume.start();
  const auto open = [&](const StoreOptions& options) { return without_monitors(*volume.cluster, options); };
  CHECK(cli::evict(open, clock, client->id().value));
  CHECK(volume.record_of(client->id())->state == State::fenced);
}

TEST_CASE("evict gives up to look for the client, before which nothing is changed") {
  test::SimulatedTime time;
  test::SimulatedClock clock(time, {});
  test::InstanceVolume volume;
  std::vector<bool> gives_up;
  const auto open = [&](const StoreOptions& options) {
    gives_up.push_back(options.step_timeout.has_value());
    return volume.cluster->new_client();
  };
  const auto evicted = cli::evict(open, clock, 4711);
  CHECK((!evicted && evicted.error().code == ErrorCode::not_found));
  CHECK(gives_up == std::vector{true});
}

}  // namespace
}  // namespace lccfs
