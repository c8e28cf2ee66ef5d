// SPDX-License-Identifier: LGPL-2.1-or-later
// Times of writes: those that follow soon on one another have one time, unless somebody has looked (docs/DATA.md 7).
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/test_volume.h"
#include "unit/buffered_mounts.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

constexpr std::chrono::milliseconds soon{1}, late{4};

TimeSpec mtime_of(FileSystem& fs, Ino ino) { return need(fs.get_attributes(ino)).attributes.mtime; }

/// One that was written and synced, and that nobody has looked at since.
struct Written {
  explicit Written(const FileSystemOptions& options = {})
      : mount(volume.mount(options)), file(create_file(*mount.file_system, "f")) {
    write();
    need(mount->fsync(file.handle, false));
    mount.client->reset_record();
  }
  void write() { need(write_at(*mount.file_system, file.handle, 0, "bytes")); }
  void write_after(std::chrono::milliseconds pause) {
    volume.clock().advance(pause);
    write();
  }

  TestVolume volume;
  Mount mount;
  OpenFile file;
};

TimeSpec later_by(TimeSpec time, std::chrono::milliseconds pause) {
  const auto nanoseconds = time.nanoseconds + std::chrono::nanoseconds(pause).count();
  return {time.seconds + nanoseconds / 1'000'000'000, static_cast<std::uint32_t>(nanoseconds % 1'000'000'000)};
}

}  // namespace

TEST_CASE("fsync after a write costs the inode no step if the last write was less than four milliseconds ago") {
  for (const bool is_buffered : {false, true}) {
    Written t(is_buffered ? buffered() : FileSystemOptions{});
    t.write_after(soon);
    need(t.mount->fsync(t.file.handle, false));
    CHECK(t.mount.client->counts() == StepCounts{.writes = 1});
    t.mount.client->reset_record();
    t.write_after(late - soon);
    need(t.mount->fsync(t.file.handle, false));
    CHECK(t.mount.client->counts() == StepCounts{.applies = 1, .writes = 1});
  }
}

TEST_CASE("a write after somebody has looked at the file has its own time, however soon it comes") {
  Written t;
  const auto seen = mtime_of(*t.mount.file_system, t.file.ino);
  t.write_after(soon);
  t.write_after(soon);  // as the one before
  CHECK(mtime_of(*t.mount.file_system, t.file.ino) == later_by(seen, soon));
  t.write_after(soon);
  CHECK(mtime_of(*t.mount.file_system, t.file.ino) == later_by(seen, 3 * soon));
}

TEST_CASE("the same where another client has looked") {
  Written t(buffered());
  auto other = t.volume.mount();
  const auto seen = mtime_of(*other.file_system, t.file.ino);
  t.write_after(soon);
  CHECK(mtime_of(*other.file_system, t.file.ino) == later_by(seen, soon));
  t.write_after(soon);
  CHECK(mtime_of(*other.file_system, t.file.ino) == later_by(seen, 2 * soon));
}

TEST_CASE("once another client has asked, it may read what is stored at any time: each write has its own time") {
  Written t(buffered());
  auto other = t.volume.mount();
  mtime_of(*other.file_system, t.file.ino);
  for (int i = 0; i < 2; ++i) {
    t.mount.client->reset_record();
    t.write_after(soon);
    need(t.mount->fsync(t.file.handle, false));
    CHECK(t.mount.client->counts() == StepCounts{.applies = 1, .writes = 1});
  }
}

TEST_CASE("each write of a file that another client has open has its own time") {
  Written t(buffered());
  auto other = t.volume.mount();
  const auto reader = open_again(*other.file_system, t.file.ino, O_RDONLY);
  t.write_after(late);
  const auto first = mtime_of(*t.mount.file_system, t.file.ino);
  t.write_after(soon);
  t.write_after(soon);
  CHECK(mtime_of(*t.mount.file_system, t.file.ino) == later_by(first, 2 * soon));
  close_file(*other.file_system, reader);
}

TEST_CASE("a write after a program has set the times, or the clock was put back, has its own time") {
  Written t;
  const auto first = mtime_of(*t.mount.file_system, t.file.ino);
  t.write_after(late);
  need(t.mount->set_attributes(
      {}, t.file.ino,
      {.mode = {}, .uid = {}, .gid = {}, .size_bytes = {}, .atime = {}, .mtime = later_by(first, late)}));
  t.write_after(soon);
  CHECK(mtime_of(*t.mount.file_system, t.file.ino) == later_by(first, late + soon));
  t.write_after(soon);
  t.volume.clock().advance(-3 * soon);
  t.write();
  CHECK(mtime_of(*t.mount.file_system, t.file.ino) == later_by(first, late - soon));
}

TEST_CASE("bytes of a write that has left the times alone go to the store after five seconds, and once") {
  Written t(buffered());
  t.write_after(soon);
  t.volume.clock().advance(std::chrono::seconds(6));
  t.mount->tick();
  need(t.mount->fsync(t.file.handle, false));
  CHECK(t.mount.client->counts() == StepCounts{.writes = 1});
  t.volume.clock().advance(std::chrono::seconds(6));
  t.mount->tick();
  need(t.mount->fsync(t.file.handle, false));
  CHECK(t.mount.client->counts() == StepCounts{.writes = 1});
}
