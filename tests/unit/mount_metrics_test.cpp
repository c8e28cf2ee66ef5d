// SPDX-License-Identifier: LGPL-2.1-or-later
// What the log says of a request that hangs: what it is about, and what it waits for.
#include <fcntl.h>

#include <future>

#include "format/object_names.h"
#include "fuse/mount_metrics.h"
#include "fuse/operation_kinds.h"
#include "fuse/subject.h"
#include "metrics/measured_store.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/hooks.h"
#include "support/log_lines.h"
#include "support/test_volume.h"

namespace lccfs {
namespace {

using fuse::Kind;
using fuse::Subject;
using test::need;
using namespace std::chrono_literals;

/// A mount whose requests, and steps of the store, are measured. Each request that hangs here does so for three seconds.
struct MeasuredMount {
  test::TestVolume volume;
  test::FakeClock clock;
  fuse::MountMetrics metrics{clock, std::chrono::seconds(2)};
  std::shared_ptr<ScriptedClient> client = volume.new_client();
  std::unique_ptr<FileSystem> fs = need(mount_volume(metrics::measured(client, metrics.store), volume.clock(), {}));

  /// The lines about a request on that.
  std::vector<std::string> lines_while_hanging(Kind kind, const Subject& subject) {
    const test::LogLines lines;
    const auto running = metrics.operations.begin(static_cast<std::size_t>(kind), subject.text());
    clock.advance(3s);
    metrics.tick(*fs);
    const auto told = lines.with("slow operation");
    metrics.operations.end(running, metrics::Outcome::done);
    return told;
  }
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("what a request is about is its inode, or a name in it") {
  CHECK(Subject(Ino{4711}).text() == "inode 4711");
  CHECK(Subject(root_ino, "report.txt").text() == "inode 1, \"report.txt\"");
  CHECK(Subject::ino_in(Subject(Ino{4711}).text()) == Ino{4711});
  CHECK(Subject::ino_in(Subject(Ino{4711}, "12").text()) == Ino{4711});
  CHECK(Subject::ino_in("Inode.4711") == Ino{});
  CHECK(Subject::ino_in("") == Ino{});
}

TEST_CASE("a name that is too long for the table is cut, and says so") {
  const std::size_t room = metrics::InFlightTable::longest_subject - std::string_view("inode 1, \"\"").size();
  const std::string fits(room, 'x'), longest(255, 'x');
  CHECK(Subject(root_ino, fits).text() == "inode 1, \"" + fits + "\"");
  CHECK(Subject(root_ino, fits + "x").text() == "inode 1, \"" + std::string(room - 3, 'x') + "...\"");
  CHECK(Subject(Ino{UINT64_MAX}, longest).text().size() == metrics::InFlightTable::longest_subject);
}

TEST_CASE("the line about a slow request names the entry, and stays one line") {
  MeasuredMount mount;
  CHECK(mount.lines_while_hanging(Kind::create, Subject(root_ino, "a\nb")) ==
        Lines{"slow operation: create of inode 1, \"a\\x0ab\" has not ended after 3.0 s"});
}

TEST_CASE("the line about a request that hangs names the step of the store on its inode that is under way longest") {
  MeasuredMount mount;
  const auto file = test::create_file(*mount.fs, "f"), other = test::create_file(*mount.fs, "other");
  need(test::write_at(*mount.fs, file.handle, 0, "bytes"));
  SECTION("of metadata") {
    mount.client->set_hook([object = format::inode_object(file.ino)](const StepInfo& info) {
      return info.object == object ? Fault{Fault::Kind::hold} : Fault{};
    });
    auto hangs = std::async(std::launch::async, [&] { return mount.fs->list_xattrs(file.ino); });
    REQUIRE(mount.client->wait_for_held(1));
    const auto name = format::inode_object(file.ino);
    CHECK(mount.lines_while_hanging(Kind::listxattr, Subject(file.ino)) ==
          Lines{"slow operation: listxattr of inode " + std::to_string(file.ino.value) +
                " has not ended after 3.0 s: query of " + name + " is under way for 3.0 s"});
    CHECK(mount.lines_while_hanging(Kind::getattr, Subject(other.ino)) ==
          Lines{"slow operation: getattr of inode " + std::to_string(other.ino.value) + " has not ended after 3.0 s"});
    mount.client->set_hook(nullptr);
    mount.client->release_all();
    need(hangs.get());
  }
  SECTION("of data") {
    mount.client->set_hook(
        [](const StepInfo& info) { return info.kind == StepKind::write ? Fault{Fault::Kind::hold} : Fault{}; });
    auto hangs = std::async(std::launch::async, [&] { return test::write_at(*mount.fs, file.handle, 0, "more"); });
    REQUIRE(mount.client->wait_for_held(1));
    const auto name = format::data_object(file.ino, ObjectIndex{0});
    CHECK(mount.lines_while_hanging(Kind::write, Subject(file.ino)) ==
          Lines{"slow operation: write of inode " + std::to_string(file.ino.value) +
                " has not ended after 3.0 s: write_data of " + name + " is under way for 3.0 s"});
    mount.client->set_hook(nullptr);
    mount.client->release_all();
    need(hangs.get());
  }
}

TEST_CASE("the line about a request that hangs names the client that is asked for what it holds of the inode") {
  MeasuredMount mount;
  const auto holder = mount.volume.mount();
  const auto file = test::create_file(*holder.file_system, "f");
  need(test::write_at(*holder.file_system, file.handle, 0, "bytes"));
  holder.client->set_hook(test::once_on("release lease", {Fault::Kind::hold}));
  const auto ours = test::open_again(*mount.fs, file.ino);
  auto hangs = std::async(std::launch::async, [&] { return test::write_at(*mount.fs, ours, 0, "ours"); });
  REQUIRE(holder.client->wait_for_held(1));
  const auto told = mount.lines_while_hanging(Kind::write, Subject(file.ino));
  REQUIRE(told.size() == 1);
  const auto asked = mount.fs->asked_holder(file.ino);
  REQUIRE(asked);
  CHECK(told.front() == "slow operation: write of inode " + std::to_string(file.ino.value) +
                            " has not ended after 3.0 s: instance " + std::to_string(asked->value) +
                            " is asked for what it holds");
  CHECK_FALSE(mount.fs->asked_holder(root_ino));
  holder.client->release_all();
  need(hangs.get());
  CHECK_FALSE(mount.fs->asked_holder(file.ino));
}

}  // namespace lccfs
