// SPDX-License-Identifier: LGPL-2.1-or-later
// The collector inside a mount.
#include <future>

#include "fuse/collector_thread.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/simulated_time.h"
#include "support/test_volume.h"

namespace lccfs {
namespace {

using std::chrono::seconds;
using test::Mount;
using test::need;
using test::TestVolume;

MakeVolumeOptions with_grace(std::uint32_t grace_seconds) {
  MakeVolumeOptions options;
  options.grace_seconds = grace_seconds;
  return options;
}

void leave_garbage(FileSystem& fs) {
  for (const char* name : {"a", "b", "c"}) {
    need(fs.make_node({}, root_ino, name, {}));
    need(fs.unlink(root_ino, name));
  }
}

bool has_asked(const Mount& mount) { return mount.client->counts().notifies > 0; }

TEST_CASE("a mount collects what is older than the volume's grace period, and nothing younger") {
  TestVolume volume(with_grace(20));
  const Mount fs = volume.mount();
  CHECK(fs->grace_period() == seconds(20));
  leave_garbage(*fs.file_system);
  CHECK(need(fs->collect_garbage({}, {})).inodes_removed == 0);
  volume.clock().advance(seconds(21));
  CHECK(need(fs->collect_garbage({}, {})).inodes_removed == 3);
  CHECK(need(fs->collect_garbage({}, {})).inodes_removed == 0);
  need(fs->unmount());
}

TEST_CASE("a mount leaves its turn to another client that has just collected") {
  TestVolume volume;
  const Mount first = volume.mount();
  const Mount second = volume.mount();
  leave_garbage(*second.file_system);
  volume.clock().advance(first->grace_period() + seconds(1));
  CHECK(need(first->collect_garbage({}, {})).inodes_removed == 3);
  second.client->reset_record();
  need(second->collect_garbage({}, {}));
  CHECK_FALSE(has_asked(second));
  volume.clock().advance(second->grace_period());
  need(second->collect_garbage({}, {}));
  CHECK(has_asked(second));
}

TEST_CASE("a read-only mount collects nothing") {
  TestVolume volume;
  leave_garbage(*volume.mount().file_system);
  FileSystemOptions options;
  options.read_only = true;
  const Mount reader = volume.mount(options);
  const auto report = reader->collect_garbage({}, {});
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ErrorCode::read_only);
}

TEST_CASE("a pass that is told to stop before it begins removes nothing") {
  TestVolume volume;
  const Mount fs = volume.mount();
  leave_garbage(*fs.file_system);
  volume.clock().advance(fs->grace_period() + seconds(1));
  std::stop_source stop;
  stop.request_stop();
  CHECK(need(fs->collect_garbage(stop.get_token(), {})).inodes_removed == 0);
  CHECK(need(fs->collect_garbage({}, {})).inodes_removed == 3);
}

TEST_CASE("a mount's collecting thread collects about once a grace period") {
  TestVolume volume(with_grace(20));
  const Mount fs = volume.mount();
  leave_garbage(*fs.file_system);
  volume.clock().advance(seconds(21));
  metrics::CollectorCounts counts;
  test::SimulatedTime time;
  test::SimulatedClock clock(time, {});
  const auto collector = fuse::start_collector_thread(*fs.file_system, clock, counts);
  const auto collected = [&] { return has_asked(fs); };
  CHECK_FALSE(time.run_until(collected, seconds(9)));
  CHECK(time.run_until(collected, seconds(31)));
  const auto counted = [&] {
    metrics::Exposition page;
    counts.write(page);
    return page.text().find("\nlccfs_collector_removed_inodes_total 3\n") != std::string::npos;
  };
  CHECK(time.run_until(counted, seconds(31)));
}

TEST_CASE("a mount's collecting thread ends with the mount, whatever it waits for") {
  TestVolume volume(with_grace(1'000'000));
  const Mount fs = volume.mount();
  metrics::CollectorCounts counts;
  test::SimulatedTime time;
  test::SimulatedClock clock(time, {});
  { const auto collector = fuse::start_collector_thread(*fs.file_system, clock, counts); }
  need(fs->unmount());
}

TEST_CASE("a mount ends though an object of what was removed does not answer") {
  TestVolume volume(with_grace(0));
  const Mount fs = volume.mount();
  const auto made = test::create_file(*fs.file_system, "file");
  need(test::write_at(*fs.file_system, made.handle, 0, "bytes"));
  test::close_file(*fs.file_system, made.handle);
  need(fs->unlink(root_ino, "file"));
  volume.clock().advance(seconds(1));
  fs.client->set_hook(
      [](const StepInfo& info) { return info.kind == StepKind::remove ? Fault{Fault::Kind::hold} : Fault{}; });
  std::stop_source stop;
  auto pass = std::async(std::launch::async, [&] { return fs->collect_garbage(stop.get_token(), {}); });
  CHECK(fs.client->wait_for_held(1));
  stop.request_stop();
  CHECK(need(pass.get()).inodes_removed == 0);
  need(fs->unmount());
}

}  // namespace
}  // namespace lccfs
