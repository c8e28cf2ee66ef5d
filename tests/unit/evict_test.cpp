// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs evict on a store that does not answer.
#include <atomic>
#include <optional>
#include <thread>

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
    evicted = cli::evict(volume.cluster->new_client(), clock, client->id().value);
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

}  // namespace
}  // namespace lccfs
