// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics/measured_store.h"

#include "metrics/hanging_operations.h"
#include "scripted/scripted_store.h"
#include "support/catch.h"
#include "support/fake_clock.h"
#include "support/log_lines.h"
#include "support/simulated_time.h"

using namespace lccfs;
using namespace std::chrono_literals;

namespace {

struct MeasuredClient {
  test::FakeClock clock;
  metrics::Operations operations{clock, metrics::store_operations({})};
  std::shared_ptr<ScriptedClient> client = ScriptedCluster::make()->new_client();
  std::unique_ptr<ObjectStore> store = metrics::measured(client, operations);

  bool says(const std::string& line) const {
    metrics::Exposition page;
    operations.write(page);
    return page.text().find("\n" + line + "\n") != std::string::npos;
  }
  Result<> write(std::string_view bytes) {
    Result<> result = failure(ErrorCode::io, "no answer");
    const auto owner = std::make_shared<std::string>(bytes);
    store->write_data("Data.5.0", 0, {std::shared_ptr<const char>(owner, owner->data()), owner->data(), owner->size()},
                      [&result](Result<> done) { result = std::move(done); });
    return result;
  }
};

}  // namespace

TEST_CASE("a measured store does what the store behind it does, and counts it") {
  MeasuredClient measured;
  REQUIRE(measured.write("twelve bytes"));
  char target[64];
  std::size_t got = 0;
  measured.store->read_data("Data.5.0", 0, target, [&got](Result<std::size_t> read) { got = read.value_or(0); });
  CHECK(std::string_view(target, got) == "twelve bytes");
  CHECK(measured.says("lccfs_store_operation_duration_seconds_count{operation=\"write_data\"} 1"));
  CHECK(measured.says("lccfs_store_operation_written_bytes_total 12"));
  CHECK(measured.says("lccfs_store_operation_read_bytes_total 12"));
  CHECK(measured.store->identity() == measured.client->identity());
}

TEST_CASE("a guard that fails is an answer, an error of the store a failure") {
  MeasuredClient measured;
  CHECK_FALSE(measured.store->query({.object = "Super", .payload = true}));
  CHECK(measured.says("lccfs_store_operation_errors_total{operation=\"query\"} 1"));
  measured.client->set_hook([](const StepInfo&) { return Fault{Fault::Kind::fail, ErrorCode::io}; });
  CHECK_FALSE(measured.write("lost"));
  CHECK(measured.says("lccfs_store_operation_failures_total{operation=\"write_data\"} 1"));
  CHECK(measured.says("lccfs_store_operation_written_bytes_total 0"));
}

TEST_CASE("a step that is held is in flight") {
  MeasuredClient measured;
  measured.clock.advance(1h);
  measured.client->set_hook([](const StepInfo&) { return Fault{Fault::Kind::hold, {}}; });
  bool answered = false;
  measured.store->remove_data("Data.5.0", [&answered](const Result<>&) { answered = true; });
  measured.clock.advance(3s);
  CHECK(measured.says("lccfs_store_operation_in_flight 1"));
  CHECK(measured.says("lccfs_store_operation_oldest_seconds 3"));
  measured.client->release_all();
  CHECK(answered);
  CHECK(measured.says("lccfs_store_operation_in_flight 0"));
}

TEST_CASE("a program that somebody waits for names what hangs for longer than it was told, and with 0 nothing") {
  const test::LogLines lines;
  test::SimulatedTime time;
  test::SimulatedClock clock(time, {});
  const auto limit = GENERATE(0s, 3s);
  metrics::HangingOperations hanging(clock, limit);
  const auto client = ScriptedCluster::make()->new_client();
  client->set_hook([](const StepInfo&) { return Fault{Fault::Kind::hold, {}}; });
  const auto store = hanging.look_at(client);
  store->remove_data("Data.5.0", [](const Result<>&) {});
  time.run_until(2s);
  CHECK(lines.all().empty());
  time.run_until(5s);
  CHECK(lines.all().size() == (limit == 0s ? 0 : 1));
  client->release_all();
}
