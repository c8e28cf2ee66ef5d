// SPDX-License-Identifier: LGPL-2.1-or-later
// The collector in the background: turns, failures, fences, the end.
#include "gc/daemon.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "lccfs/volume.h"
#include "options/progress.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/temporary_folder.h"
#include "support/test_volume.h"

namespace lccfs {
namespace {

using gc::Daemon;
using std::chrono::seconds;
using test::need;
using test::TestVolume;

/// The daemon's pauses last as long as they should, with a `during` each; after the last the daemon is told to end.
class PlayedPauses final : public Clock {
 public:
  explicit PlayedPauses(test::FakeClock& clock) : clock_(clock) {}
  std::chrono::nanoseconds elapsed() const override { return clock_.elapsed(); }
  TimeSpec wall_time() const override { return clock_.wall_time(); }
  void sleep_for(std::chrono::nanoseconds duration) override { clock_.sleep_for(duration); }
  bool wait_for(std::condition_variable&, std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds duration,
                const std::function<bool()>& done) override {
    lock.unlock();
    clock_.advance(duration);
    if (number_ == count_) {
      stop_.request_stop();
    } else {
      during_(number_++);
    }
    lock.lock();
    return done();
  }

  /// Runs the daemon with so many pauses between its turns.
  Result<> run(Daemon& daemon, int count, std::function<void(int)> during) {
    count_ = count;
    during_ = std::move(during);
    return daemon.run(stop_.get_token());
  }

 private:
  test::FakeClock& clock_;
  std::stop_source stop_;
  std::function<void(int)> during_;
  int count_ = 0, number_ = 0;
};

/// A volume, and the store clients that a daemon has opened on it.
struct World {
  TestVolume volume;
  PlayedPauses pauses{volume.clock()};
  metrics::CollectorCounts counts;
  std::vector<std::shared_ptr<ScriptedClient>> clients;

  Daemon::OpenStore open_store() {
    return [this]() -> Result<std::shared_ptr<ObjectStore>> { return clients.emplace_back(volume.new_client()); };
  }
  Daemon daemon() { return {open_store(), pauses, {.grace = seconds(0)}, seconds(60), counts}; }
  std::size_t instances() { return need(describe_volume(*volume.new_client())).instances.size(); }
  /// Without a name.
  void leave_file_of_three_objects() {
    const auto mount = volume.mount();
    const auto file = test::create_file(*mount.file_system, "f");
    for (std::uint64_t i = 0; i < 3; ++i) need(test::write_at(*mount.file_system, file.handle, i << 22, "x"));
    test::close_file(*mount.file_system, file.handle);
    need(mount->unlink(root_ino, "f"));
    need(mount->unmount());
  }
  std::uint64_t backlog() { return need(describe_volume(*volume.new_client())).backlog.inodes; }

  void leave_garbage() {
    const auto mount = volume.mount();
    for (const char* name : {"a", "b"}) {
      need(mount->make_node({}, root_ino, name, NewNode{}));
      need(mount->unlink(root_ino, name));
    }
    need(mount->unmount());
  }
};

TEST_CASE("a turn that did nothing is no line of the log") {
  World world;
  const test::TemporaryFolder folder;
  const auto logged = [&] {
    std::ifstream file(folder / "log");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  REQUIRE(log::to_file(folder / "log").empty());
  Daemon daemon = world.daemon();
  need(daemon.start());
  std::string idle;
  need(world.pauses.run(daemon, 2, [&](int turn) {
    if (turn == 0) idle = logged();
    if (turn == 0) world.leave_garbage();
  }));
  const std::string in_all = logged();
  CHECK(idle.empty());
  CHECK(in_all.find("items looked at") != std::string::npos);
}

TEST_CASE("a daemon reclaims turn by turn, and leaves nothing of its own behind") {
  World world;
  Daemon daemon = world.daemon();
  need(daemon.start());
  need(world.pauses.run(daemon, 2, [&](int) { world.leave_garbage(); }));
  CHECK(world.clients.size() == 1);
  CHECK(world.backlog() == 0);
  CHECK(world.instances() == 0);
}

TEST_CASE("a daemon without a volume says so at its start") {
  const auto cluster = ScriptedCluster::make();
  test::FakeClock clock;
  metrics::CollectorCounts counts;
  Daemon daemon([&]() -> Result<std::shared_ptr<ObjectStore>> { return cluster->new_client(); }, clock, {}, seconds(60),
                counts);
  const auto started = daemon.start();
  REQUIRE_FALSE(started);
  CHECK(started.error().code == ErrorCode::not_found);
}

TEST_CASE("a pass that fails is tried again at the next turn") {
  World world;
  Daemon daemon = world.daemon();
  need(daemon.start());
  world.leave_garbage();
  bool failing = true;
  world.clients.front()->set_hook([&failing](const StepInfo& info) {
    return failing && info.kind != StepKind::query ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  std::uint64_t left = 0;
  need(world.pauses.run(daemon, 1, [&](int) {
    left = world.backlog();
    failing = false;
  }));
  CHECK(left == 2);
  CHECK(world.backlog() == 0);
  CHECK(world.clients.size() == 1);
  metrics::Exposition page;
  world.counts.write(page);
  CHECK(page.text().find("\nlccfs_collector_failures_total 1\n") != std::string::npos);
  CHECK(page.text().find("\nlccfs_collector_passes_total 1\n") != std::string::npos);
  CHECK(page.text().find("\nlccfs_collector_removed_inodes_total 2\n") != std::string::npos);
}

bool have_counted(const metrics::CollectorCounts& counts, unsigned number, const std::string& what = "inodes") {
  metrics::Exposition page;
  counts.write(page);
  const auto line = "\nlccfs_collector_removed_" + what + "_total " + std::to_string(number) + "\n";
  return page.text().find(line) != std::string::npos;
}

TEST_CASE("what a pass removes is counted while it is at work, once, and also if it fails") {
  const bool fails = GENERATE(false, true);
  World world;
  gc::WorkerOptions options{.jobs = 1, .grace = seconds(0)};
  Daemon daemon(world.open_store(), world.pauses, options, seconds(60), world.counts);
  need(daemon.start());
  world.leave_garbage();
  unsigned removes = 0;
  bool first_was_counted = false;
  world.clients.front()->set_hook([&](const StepInfo& info) {
    if (info.step != "remove dead inode" || ++removes != 2) return Fault{};
    first_was_counted = have_counted(world.counts, 1);
    return fails ? Fault{Fault::Kind::fail, ErrorCode::permission_denied} : Fault{};
  });
  bool in_first_pass = false;
  need(world.pauses.run(daemon, 1, [&](int) { in_first_pass = have_counted(world.counts, fails ? 1 : 2); }));
  CHECK(first_was_counted);
  CHECK(in_first_pass);
  CHECK(have_counted(world.counts, 2));
}

TEST_CASE("what a pass has removed of a file counts though it fails amid that file") {
  World world;
  world.leave_file_of_three_objects();
  Daemon daemon = world.daemon();
  need(daemon.start());
  bool has_failed = false;
  world.clients.front()->set_hook([&has_failed](const StepInfo& info) {
    if (info.kind != StepKind::remove || !info.object.ends_with(".1") || std::exchange(has_failed, true))
      return Fault{};
    return Fault{Fault::Kind::fail, ErrorCode::permission_denied};
  });
  bool in_first_pass = false;
  need(world.pauses.run(daemon, 1, [&](int) { in_first_pass = have_counted(world.counts, 2, "objects"); }));
  CHECK(in_first_pass);
  CHECK(have_counted(world.counts, 1));
}

TEST_CASE("a run that may not remove an object ends, and counts once what it has removed beside it") {
  World world;
  world.leave_file_of_three_objects();
  const auto client = world.volume.new_client();
  unsigned refusals = 0;
  client->set_hook([&refusals](const StepInfo& info) {
    if (info.kind != StepKind::remove || !info.object.ends_with(".1")) return Fault{};
    ++refusals;
    return Fault{Fault::Kind::fail, ErrorCode::permission_denied};
  });
  RemovedGarbage told;
  const auto report = need(gc::collect_once(client, world.volume.clock(), {.grace = seconds(0)}, {},
                                            [&told](const RemovedGarbage& so_far) { told = so_far; }));
  CHECK(report.data_objects_removed == 2);
  CHECK(told.data_objects == 2);
  CHECK(refusals == 2);  // the second pass found nothing to do
}

TEST_CASE("a run that fails leaves no instance of its own behind, and tells what it has removed") {
  World world;
  world.leave_garbage();
  const auto instances = world.instances();
  const auto client = world.volume.new_client();
  client->set_hook([](const StepInfo& info) {
    return info.kind == StepKind::notify ? Fault{Fault::Kind::fail, ErrorCode::timed_out} : Fault{};
  });
  unsigned told = 0;
  const auto listen = [&told](const RemovedGarbage&) { ++told; };
  CHECK_FALSE(gc::collect_once(client, world.volume.clock(), {.grace = seconds(0)}, {}, listen));
  CHECK(world.instances() == instances);
  CHECK(told == 1);  // at its end
}

TEST_CASE("a run that somebody looks at shows how many objects it has removed, and never fewer than before") {
  const unsigned jobs = GENERATE(1U, 16U);
  World world;
  constexpr std::uint64_t data_objects = 200;
  {
    const auto mount = world.volume.mount();
    const auto file = test::create_file(*mount.file_system, "f");
    for (std::uint64_t i = 0; i < data_objects; ++i)
      need(test::write_at(*mount.file_system, file.handle, i << 22, "x"));
    test::close_file(*mount.file_system, file.handle);
    need(mount->unlink(root_ino, "f"));
    need(mount->unmount());
  }
  world.leave_garbage();
  std::vector<std::string> terminal;
  options::ProgressBar bar(world.volume.clock(), [&](const std::string& text) { terminal.push_back(text); });
  std::vector<std::uint64_t> told;
  const auto show = [&](const RemovedGarbage& so_far) {
    const auto removed = so_far.inodes + so_far.data_objects;
    told.push_back(removed);
    world.volume.clock().advance(std::chrono::milliseconds(50));
    bar.show({removed, 0, "objects removed"});
  };
  const auto store = world.volume.new_client();
  const auto report =
      need(gc::collect_once(store, world.volume.clock(), {.jobs = jobs, .grace = seconds(0)}, {}, show));
  CHECK((report.data_objects_removed == data_objects && report.inodes_removed == 3));
  CHECK(std::ranges::is_sorted(told));
  CHECK(told.back() == data_objects + 3);
  REQUIRE(terminal.size() > 10);
  CHECK(terminal.back().contains(" objects removed, "));
}

TEST_CASE("a daemon that was fenced continues as a new client") {
  World world;
  Daemon daemon = world.daemon();
  need(daemon.start());
  const auto fencer = world.volume.new_client();
  need(world.pauses.run(daemon, 3, [&](int number) {
    if (number == 0) need(fencer->fence(world.clients.front()->identity()));
    if (number == 0) world.leave_garbage();
  }));
  CHECK(world.clients.size() == 2);
  CHECK(world.backlog() == 0);
}

TEST_CASE("a turn is left to another collector that has just begun a pass") {
  World world;
  Daemon daemon = world.daemon();
  need(daemon.start());
  auto other = need(gc::Worker::start(world.volume.new_client(), world.volume.clock(), {.grace = seconds(0)}));
  need(world.pauses.run(daemon, 1, [&](int) {
    need(other->collector().pass());
    world.clients.front()->reset_record();
  }));
  const auto trace = world.clients.front()->trace();
  CHECK(std::ranges::none_of(trace, [](const std::string& step) { return step.starts_with("notify"); }));
  need(other->end());
}

}  // namespace
}  // namespace lccfs
