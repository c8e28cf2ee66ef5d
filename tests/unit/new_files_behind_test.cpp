// SPDX-License-Identifier: LGPL-2.1-or-later
// Files that are made before the store has them, and that nobody else knows of: what they cost, when they are stored,
// and until when they are answered from memory.
#include <fcntl.h>

#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "support/catch.h"
#include "support/collecting.h"
#include "support/fake_clock.h"
#include "support/file_calls.h"
#include "support/lock_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;
using std::chrono::seconds;

namespace {

SetAttributes with_mode(std::uint32_t mode) {
  SetAttributes changes;
  changes.mode = mode;
  return changes;
}

SetAttributes with_times(std::int64_t at) {
  SetAttributes changes;
  changes.atime = changes.mtime = TimeSpec{at, 0};
  return changes;
}

/// One that writes names behind, in two directories of its own, and another client.
struct Maker {
  TestVolume volume;
  Mount visitor = volume.mount();
  Mount holder = volume.mount(new_files_behind());
  Ino d = make_dir(fs(), root_ino, "d"), e = make_dir(fs(), root_ino, "e");

  explicit Maker(const MakeVolumeOptions& options = {}) : volume(options) {
    for (const Ino where : {d, e}) need(fs().sync_directory(where));
    need(fs().lookup(root_ino, "d"));
    store().reset_record();
  }
  FileSystem& fs() { return *holder.file_system; }
  FileSystem& other() { return *visitor.file_system; }
  ScriptedClient& store() { return *holder.client; }
  bool has_stored(Ino file) { return inode_object_of(volume.cluster(), file).has_value(); }

  /// As an archiver makes a small file.
  Ino unpack(const std::string& name) {
    const auto made = need(fs().create({}, d, name, 0600, O_WRONLY | O_CREAT | O_EXCL));
    const Ino ino = made.entry.attributes.ino;
    need(write_at(fs(), made.open.handle, 0, "bytes"));
    SetAttributes owner;
    owner.uid = 7;
    owner.gid = 8;
    for (const auto& changes : {with_times(1000), owner, with_mode(0640)}) need(fs().set_attributes({}, ino, changes));
    need(fs().flush(made.open.handle));
    fs().release(made.open.handle);
    return ino;
  }
  /// The lease of a file that is idle.
  void release(Ino file) {
    const auto is_leased = [&] {
      return inode_object_of(volume.cluster(), file)->xattrs.contains(format::xattr::lease);
    };
    for (unsigned i = 0; i < 10000 && is_leased(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE_FALSE(is_leased());
  }
  /// What is dirty, and idle leases, are due.
  void let_it_be_stored() {
    volume.clock().advance(seconds(6));
    fs().tick();
    need(fs().unmount());
  }
  std::ptrdiff_t count(const std::string& step) {
    const auto trace = store().trace();
    return std::ranges::count_if(trace, [&step](const std::string& line) { return line.starts_with(step); });
  }
  /// A file whose bytes found room and whose inode did not, and whose removal was answered.
  Ino removed_when_refused() {
    const auto file = unpack("a");
    store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
    CHECK(error_of(fs().sync_directory(d)) == ErrorCode::no_space);
    need(fs().unlink(d, "a"));
    return file;
  }
  /// What is closed is stored, released, or given up.
  void seconds_pass_until_released() {
    for (unsigned i = 0; i < 10000 && fs().counts().leases != 0; ++i) {
      volume.clock().advance(seconds(6));
      fs().tick();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(fs().counts().leases == 0);
  }
  bool has_bytes(Ino file) {
    return object_names(volume.cluster()).contains(format::data_object(file, ObjectIndex{0}));
  }
  void seconds_pass(unsigned how_many) {
    for (unsigned i = 0; i < how_many; ++i) {
      volume.clock().advance(seconds(1));
      fs().tick();
    }
  }
  /// What is tried is others' work.
  void seconds_pass_until_lost(const std::string& name) {
    for (unsigned i = 0; i < 5000 && ino_of(fs(), d, name); ++i) {
      seconds_pass(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK_FALSE(ino_of(fs(), d, name));
  }
  void collect_all() {
    for (unsigned pass = 0; pass < 3; ++pass) collect(volume.cluster(), volume.clock());
  }
  void check_unpacked(FileSystem& fs, const std::string& name) {
    const auto seen = need(fs.lookup(d, name)).attributes;
    CHECK(seen.mode == 0640);
    CHECK(seen.uid == 7);
    CHECK(seen.gid == 8);
    CHECK(seen.size_bytes == 5);
    CHECK(seen.mtime == TimeSpec{1000, 0});
  }
};

}  // namespace

TEST_CASE("a small file with its bytes, mode, owner and times costs nothing before its answers") {
  Maker m;
  m.unpack("a");
  m.check_unpacked(m.fs(), "a");
  need(m.fs().rename(m.d, "a", m.d, "b", RenameMode::replace));
  m.check_unpacked(m.fs(), "b");
  CHECK(m.store().trace().empty());
  CHECK(m.store().counts().queries == 0);
}

TEST_CASE("afterwards it costs its bytes, its inode, and its share of a batch") {
  Maker m;
  constexpr unsigned files = 10;
  for (unsigned i = 0; i < files; ++i) m.unpack(std::to_string(i));
  m.let_it_be_stored();
  CHECK(m.count("create inode") == files);
  CHECK(m.count("write ") == files);
  CHECK(m.count("store names") == 1);
  CHECK(m.count("release lease") + m.count("change attr") + m.count("store size") == 0);
  for (unsigned i = 0; i < files; ++i) m.check_unpacked(m.other(), std::to_string(i));
  CHECK(problems(m.volume.cluster()).empty());
}

TEST_CASE("the first bytes of a new file are stored before its inode, and that, with its size, before its name") {
  Maker m;
  const auto made = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT));
  const Ino file = made.entry.attributes.ino;
  SECTION("at fsync") {
    need(write_at(m.fs(), made.open.handle, 0, "bytes"));
    need(m.fs().fsync(made.open.handle, false));
  }
  SECTION("at a write that waits for the store") { need(write_with(O_DSYNC, m.fs(), made.open.handle, 0, "bytes")); }
  auto steps = m.store().trace();
  if (steps.back() == step_on("store names", m.d)) steps.pop_back();
  CHECK(steps == std::vector{"write " + format::data_object(file, ObjectIndex{0}), step_on("create inode", file)});
  CHECK(need(m.other().lookup(m.d, "a")).attributes.size_bytes == 5);
  m.fs().release(made.open.handle);
}

TEST_CASE("bytes of its other objects are stored after the inode of a new file") {
  Maker m{small_objects()};
  const auto made = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT));
  const Ino file = made.entry.attributes.ino;
  need(write_at(m.fs(), made.open.handle, 2 * object_bytes, "bytes"));
  m.fs().release(made.open.handle);
  need(m.fs().sync_directory(m.d));
  CHECK(m.count("write ") == 0);
  m.let_it_be_stored();
  CHECK(m.store().trace().front() == step_on("create inode", file));
  CHECK(m.count("write ") == 1);
  CHECK(need(m.other().lookup(m.d, "a")).attributes.size_bytes == 2 * object_bytes + 5);
}

TEST_CASE("bytes that cannot be stored keep no name of a new file from it") {
  Maker m;
  const auto file = m.unpack("a");
  m.store().set_hook(always_on("write", {Fault::Kind::fail, ErrorCode::no_space}));
  need(m.fs().sync_directory(m.d));
  CHECK(inode_object_of(m.volume.cluster(), file)->xattrs.contains(format::xattr::lease));
  m.store().set_hook(nullptr);
  CHECK(need(m.other().lookup(m.d, "a")).attributes.size_bytes == 5);
}

TEST_CASE("a file whose bytes found room and whose inode did not can be removed, and leaves no bytes") {
  Maker m;
  const auto file = m.unpack("a");
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(m.fs().sync_directory(m.d)) == ErrorCode::no_space);
  REQUIRE(m.has_bytes(file));
  need(m.fs().unlink(m.d, "a"));
  need(m.fs().sync_directory(m.d));
  CHECK_FALSE(m.has_bytes(file));
}

TEST_CASE("where the store refuses an inode, the close of another new file stores its own, and is told the same") {
  Maker m;
  const auto refused = need(m.fs().create({}, m.d, "refused", 0644, O_RDWR | O_CREAT));
  const auto made = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT));
  const Ino file = made.entry.attributes.ino;
  need(write_at(m.fs(), made.open.handle, 0, "bytes"));
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(m.fs().fsync(refused.open.handle, false)) == ErrorCode::no_space);
  CHECK(error_of(m.fs().flush(made.open.handle)) == ErrorCode::no_space);
  m.fs().release(made.open.handle);
  const auto again = need(m.fs().open({}, file, O_RDONLY));
  CHECK(need(read_at(m.fs(), again.handle, 0, 10)) == "bytes");
  m.fs().release(again.handle);
  m.store().set_hook(nullptr);
  m.fs().release(refused.open.handle);
  CHECK(need(m.other().lookup(m.d, "a")).attributes.size_bytes == 5);
}

TEST_CASE("a small file whose bytes found room and whose inode did not can be opened and read after its close") {
  Maker m;
  const auto file = m.unpack("a");
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(m.fs().sync_directory(m.d)) == ErrorCode::no_space);
  REQUIRE(m.has_bytes(file));
  m.check_unpacked(m.fs(), "a");
  const auto opened = need(m.fs().open({}, file, O_RDONLY));
  CHECK(need(read_at(m.fs(), opened.handle, 0, 10)) == "bytes");
  m.fs().release(opened.handle);
  CHECK_FALSE(m.has_stored(file));
  m.store().set_hook(nullptr);
  m.check_unpacked(m.other(), "a");
}

TEST_CASE("a large file whose inode found no room, and that is removed before its bytes are sent, leaves none") {
  Maker m;
  const auto made = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT));
  const Ino file = made.entry.attributes.ino;
  need(write_at(m.fs(), made.open.handle, 0, std::string(100 << 10, 'b')));  // too much to be awaited by its batch
  m.fs().release(made.open.handle);
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(m.fs().sync_directory(m.d)) == ErrorCode::no_space);
  need(m.fs().unlink(m.d, "a"));
  need(m.fs().sync_directory(m.d));
  m.store().set_hook(nullptr);
  m.seconds_pass_until_released();
  CHECK(m.fs().counts().dirty_bytes == 0);
  if (m.has_stored(file)) {  // a try in the background came late, and found room: without a name it is a collector's
    for (unsigned pass = 0; pass < 3; ++pass) collect(m.volume.cluster(), m.volume.clock());
  }
  CHECK_FALSE(m.has_bytes(file));
}

TEST_CASE("a file that is removed, and whose refused inode is sent once more meanwhile, leaves nothing") {
  Maker m;
  const auto file = m.removed_when_refused();
  m.store().set_hook([inode = format::inode_object(file)](const StepInfo& info) {
    if (info.step == "create inode") return Fault{Fault::Kind::fail, ErrorCode::no_space};
    const bool is_held = info.step == "store names" || (info.kind == StepKind::query && info.object == inode);
    return is_held ? Fault{Fault::Kind::hold} : Fault{};
  });
  auto synced = std::async(std::launch::async, [&] { return m.fs().sync_directory(m.d); });
  REQUIRE(m.store().wait_for_held(1));
  auto looked = std::async(std::launch::async, [&] { return m.fs().get_attributes(file); });
  REQUIRE(m.store().wait_for_held(2));
  m.store().release();  // the names
  need(synced.get());
  m.store().set_hook(nullptr);
  m.store().release_all();
  static_cast<void>(looked.get());
  m.seconds_pass_until_released();
  CHECK_FALSE(m.has_stored(file));
  CHECK_FALSE(m.has_bytes(file));
}

TEST_CASE("a removal is stored though the file that it removes is just being refused") {
  Maker m;
  const auto file = m.removed_when_refused();
  m.store().set_hook([inode = format::inode_object(file)](const StepInfo& info) {
    if (info.step == "create inode") return Fault{Fault::Kind::fail, ErrorCode::no_space};
    const bool is_read_back = info.kind == StepKind::query && info.object == inode;
    return is_read_back ? Fault{Fault::Kind::hold} : Fault{};
  });
  auto looked = std::async(std::launch::async, [&] { return m.fs().get_attributes(file); });
  REQUIRE(m.store().wait_for_held(1));
  auto synced = std::async(std::launch::async, [&] { return m.fs().sync_directory(m.d); });
  static_cast<void>(synced.wait_for(std::chrono::milliseconds(50)));  // as a rule it waits for the inode by then
  m.store().release_all();
  need(synced.get());
  static_cast<void>(looked.get());
  CHECK_FALSE(m.has_stored(file));
  CHECK_FALSE(m.has_bytes(file));
}

TEST_CASE("an object that does not answer keeps the names beside it from the store for a second") {
  Maker m;
  const auto file = m.unpack("a");
  m.store().set_hook(always_on("write", {Fault::Kind::hold}));
  auto synced = std::async(std::launch::async, [&] { return m.fs().sync_directory(m.d); });
  REQUIRE(m.store().wait_for_held(1));
  CHECK_FALSE(m.has_stored(file));
  m.volume.clock().advance(seconds(1));
  for (unsigned i = 0; i < 10000 && !m.has_stored(file); ++i) {
    m.fs().tick();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(m.has_stored(file));
  m.store().set_hook(nullptr);
  m.store().release_all();
  need(synced.get());
  CHECK(need(m.other().lookup(m.d, "a")).attributes.size_bytes == 5);
}

TEST_CASE("an unmount that waits for one object stores the names beside it, and other files") {
  Maker m;
  const auto file = m.unpack("a");
  const auto other = create_file(m.fs(), "other");
  need(write_at(m.fs(), other.handle, 0, "bytes"));
  m.fs().release(other.handle);
  m.store().set_hook([object = format::data_object(file, ObjectIndex{0})](const StepInfo& info) {
    return info.kind == StepKind::write && info.object == object ? Fault{Fault::Kind::hold} : Fault{};
  });
  m.volume.clock().waits_end_at_once = true;
  auto unmounted = std::async(std::launch::async, [&] { return m.fs().unmount(); });
  REQUIRE(m.store().wait_for_held(1));
  const auto are_stored = [&] { return m.has_stored(file) && m.has_stored(other.ino) && m.has_bytes(other.ino); };
  for (unsigned i = 0; i < 20'000 && !are_stored(); ++i) {
    m.volume.clock().advance(std::chrono::milliseconds(100));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(are_stored());
  CHECK(unmounted.wait_for(seconds(0)) == std::future_status::timeout);
  m.store().set_hook(nullptr);
  m.store().release_all();
  need(unmounted.get());
  CHECK(need(m.other().lookup(m.d, "a")).attributes.size_bytes == 5);
}

TEST_CASE("an unmount that waits for one directory's lease stores other files") {
  Maker m;
  const auto other = create_file(m.fs(), "other");
  m.store().set_hook([object = format::inode_object(m.e)](const StepInfo& info) {
    const bool is_release = info.step == "release directory lease" && info.object == object;
    return is_release ? Fault{Fault::Kind::hold} : Fault{};
  });
  m.volume.clock().advance(seconds(60));
  m.fs().tick();
  REQUIRE(m.store().wait_for_held(1));
  need(write_at(m.fs(), other.handle, 0, "bytes"));
  m.fs().release(other.handle);
  m.volume.clock().waits_end_at_once = true;
  auto unmounted = std::async(std::launch::async, [&] { return m.fs().unmount(); });
  for (unsigned i = 0; i < 20'000 && !m.has_bytes(other.ino); ++i) {
    m.volume.clock().advance(std::chrono::milliseconds(100));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(m.has_bytes(other.ino));
  m.store().set_hook(nullptr);
  m.store().release_all();
  need(unmounted.get());
}

TEST_CASE("bytes whose client died before it stored their inode are no damage, and a collector removes them") {
  Maker m;
  const auto file = m.unpack("a");
  m.store().set_hook(once_on("create inode", {Fault::Kind::not_applied_and_crash}));
  CHECK_FALSE(m.fs().sync_directory(m.d));
  CHECK(m.has_bytes(file));
  CHECK(problems(m.volume.cluster()).empty());
  m.volume.clock().advance(seconds(120));
  for (unsigned pass = 0; pass < 3; ++pass) collect(m.volume.cluster(), m.volume.clock());
  CHECK_FALSE(m.has_bytes(file));
}

TEST_CASE("a new file that is removed after its bytes were stored leaves nothing behind for good") {
  Maker m;
  const auto made = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT));
  const Ino file = made.entry.attributes.ino;
  need(write_with(O_DIRECT, m.fs(), made.open.handle, 0, "bytes"));
  m.fs().release(made.open.handle);
  REQUIRE(m.has_bytes(file));
  REQUIRE_FALSE(m.has_stored(file));
  need(m.fs().unlink(m.d, "a"));
  need(m.fs().sync_directory(m.d));
  for (unsigned pass = 0; pass < 3; ++pass) {
    m.fs().tick();
    m.volume.clock().advance(seconds(120));
    collect(m.volume.cluster(), m.volume.clock());
  }
  CHECK_FALSE(m.has_bytes(file));
  CHECK_FALSE(m.has_stored(file));
}

TEST_CASE("an open of a file whose lease is ours asks nobody, while Super's word is fresh") {
  Maker m;
  const auto file = m.unpack("a");
  const auto open = need(m.fs().open({}, file, O_RDWR));
  CHECK(need(read_at(m.fs(), open.handle, 0, 10)) == "bytes");
  CHECK(m.store().trace().empty());
  CHECK(m.store().counts().queries == 0);
  m.fs().release(open.handle);
  const auto kept = need(m.fs().open({}, file, O_RDWR));
  need(write_at(m.fs(), kept.handle, 0, "BYTES"));
  need(m.fs().fsync(kept.handle, false));
  m.store().reset_record();
  const auto open_again = [&] { m.fs().release(need(m.fs().open({}, file, O_RDONLY)).handle); };
  open_again();
  CHECK(m.store().counts().queries == 0);
  m.volume.clock().advance(seconds(6));
  m.store().set_hook([](const StepInfo& info) {
    return info.object == format::super_object ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  open_again();
  CHECK(m.store().counts().queries == 2);  // of the inode, and of Super
  m.store().set_hook(nullptr);
  m.fs().release(kept.handle);
}

TEST_CASE("a lease that may be released in the store already is not believed by an open") {
  Maker m;
  const auto file = m.unpack("a");
  need(m.fs().sync_directory(m.d));
  const auto mine = need(m.fs().open({}, file, O_RDWR));
  need(write_at(m.fs(), mine.handle, 0, "mine"));
  need(m.fs().fsync(mine.handle, false));
  m.fs().release(mine.handle);
  m.store().set_hook(once_on("release lease", {Fault::Kind::run_again_later}));
  m.volume.clock().advance(seconds(6));
  m.fs().tick();
  REQUIRE(m.store().wait_for_held(1));
  const auto theirs = need(m.other().open({}, file, O_RDWR));
  need(write_at(m.other(), theirs.handle, 0, "their own"));
  need(m.other().fsync(theirs.handle, false));
  m.store().reset_record();
  auto opened = std::async(std::launch::async, [&] { return m.fs().open({}, file, O_RDONLY); });
  const auto has_asked = [&] { return m.store().counts().queries >= 2; };  // Super, and for the inode
  for (unsigned i = 0; i < 10000 && !has_asked(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(has_asked());
  m.store().set_hook(nullptr);
  m.store().release_all();
  const auto again = need(opened.get());
  CHECK(need(read_at(m.fs(), again.handle, 0, 20)) == "their own");
  m.fs().release(again.handle);
  m.other().release(theirs.handle);
}

TEST_CASE("a file that was opened and found no room can be removed") {
  Maker m;
  const auto file = m.unpack("a");
  m.fs().release(need(m.fs().open({}, file, O_RDONLY)).handle);
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(m.fs().sync_directory(m.d)) == ErrorCode::no_space);
  need(m.fs().unlink(m.d, "a"));
  need(m.fs().sync_directory(m.d));
}

TEST_CASE("a file that found no room can be removed, or replaced, before its last close is told") {
  Maker m;
  m.unpack("c");
  need(m.fs().sync_directory(m.d));
  const auto removed = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT)).open.handle;
  const auto replaced = need(m.fs().create({}, m.d, "b", 0644, O_RDWR | O_CREAT)).open.handle;
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  for (const auto handle : {removed, replaced}) {
    write_at(m.fs(), handle, 0, "some");
    CHECK(error_of(m.fs().fsync(handle, false)) == ErrorCode::no_space);
  }
  need(m.fs().unlink(m.d, "a"));
  need(m.fs().rename(m.d, "c", m.d, "b", RenameMode::replace));
  m.store().set_hook(nullptr);
  for (const auto handle : {removed, replaced}) m.fs().release(handle);
  need(m.fs().sync_directory(m.d));
  CHECK(error_of(m.other().lookup(m.d, "a")) == ErrorCode::not_found);
  m.check_unpacked(m.other(), "b");
}

TEST_CASE("an open file of which nobody knows yet that it finds no room can be removed, or replaced") {
  Maker m;
  m.unpack("c");
  need(m.fs().sync_directory(m.d));
  const auto removed = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT)).open.handle;
  const auto replaced = need(m.fs().create({}, m.d, "b", 0644, O_RDWR | O_CREAT)).open.handle;
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  need(m.fs().rename(m.d, "c", m.d, "b", RenameMode::replace));
  need(m.fs().unlink(m.d, "a"));
  m.store().set_hook(nullptr);
  for (const auto handle : {removed, replaced}) m.fs().release(handle);
  need(m.fs().sync_directory(m.d));
  CHECK(error_of(m.other().lookup(m.d, "a")) == ErrorCode::not_found);
  m.check_unpacked(m.other(), "b");
}

TEST_CASE("a file whose last close is told while its removal waits for a full store is removed") {
  Maker m;
  const auto made = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT));
  std::once_flag is_told;
  m.store().set_hook([&](const StepInfo& info) {
    std::call_once(is_told, [&] { m.fs().release(made.open.handle); });
    return info.step == "create inode" ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  need(m.fs().unlink(m.d, "a"));
  m.store().set_hook(nullptr);
  need(m.fs().sync_directory(m.d));
  CHECK(error_of(m.other().lookup(m.d, "a")) == ErrorCode::not_found);
}

TEST_CASE("extended attributes of a new inode that has none are not asked for") {
  Maker m;
  const auto file = m.unpack("a");
  for (const Ino ino : {file, m.d}) {
    CHECK(m.fs().knows_no_xattr(ino, "user.a"));
    CHECK(need(m.fs().list_xattrs(ino)).empty());
  }
  CHECK(m.store().trace().empty());
  CHECK(m.store().counts().queries == 0);
  for (const Ino ino : {file, m.d}) {
    need(m.fs().set_xattr(ino, "user.a", "1", XattrMode::create_or_replace, SetgidBit::stays));
    CHECK_FALSE(m.fs().knows_no_xattr(ino, "user.a"));
    CHECK(need(m.fs().list_xattrs(ino)) == std::vector<std::string>{"user.a"});
  }
}

TEST_CASE("whoever does not hold an inode alone asks for its extended attributes") {
  Maker m;
  const auto file = make_file(m.fs(), m.d, "a");
  need(m.other().lookup(m.d, "a"));
  need(m.other().set_xattr(file, "user.a", "1", XattrMode::create_or_replace, SetgidBit::stays));
  CHECK_FALSE(m.fs().knows_no_xattr(file, "user.a"));
  CHECK(need(m.fs().list_xattrs(file)) == std::vector<std::string>{"user.a"});
}

TEST_CASE("what is done to a new inode and is not part of it stores it first") {
  Maker m;
  const auto file = make_file(m.fs(), m.d, "a");
  SECTION("an attribute") {
    need(m.fs().set_xattr(file, "user.a", "1", XattrMode::create_or_replace, SetgidBit::stays));
    CHECK(need(m.other().get_xattr(file, "user.a")) == "1");
  }
  SECTION("another name") {
    need(m.fs().link(file, m.e, "b"));
    CHECK(need(m.other().lookup(m.e, "b")).attributes.nlink == 2);
  }
  SECTION("an open") {
    const auto open = need(m.fs().open({}, file, O_RDONLY));
    m.fs().release(open.handle);
  }
  SECTION("a lookup by its number") { need(m.fs().lookup(file, ".")); }
  SECTION("its target") {
    const NewNode link{FileType::symlink, 0, 0, "there"};
    CHECK(need(m.fs().read_link(need(m.fs().make_node({}, m.d, "l", link)).attributes.ino)) == "there");
  }
  SECTION("its removal") {
    need(m.fs().unlink(m.d, "a"));
    need(m.fs().sync_directory(m.d));
  }
  need(m.fs().sync_directory(m.d));
  CHECK(problems(m.volume.cluster()).empty());
}

TEST_CASE("the times of a new symlink are part of it") {
  Maker m;
  const auto link = need(m.fs().make_node({}, m.d, "l", {FileType::symlink, 0, 0, "there"})).attributes.ino;
  CHECK(need(m.fs().set_attributes({}, link, with_times(1000))).attributes.mtime == TimeSpec{1000, 0});
  CHECK(m.store().trace().empty());
  need(m.fs().sync_directory(m.d));
  CHECK(need(m.other().lookup(m.d, "l")).attributes.mtime == TimeSpec{1000, 0});
}

TEST_CASE("a new inode whose creation is run twice, or loses its answer, is as it was answered") {
  Maker m;
  const auto kind =
      GENERATE(Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  m.store().set_hook(once_on("create inode", {kind}));
  m.unpack("a");
  need(m.fs().sync_directory(m.d));
  m.check_unpacked(m.other(), "a");
  CHECK(problems(m.volume.cluster()).empty());
}

TEST_CASE("an inode that finds no room is told to who waits for it, and to who makes the next") {
  Maker m;
  make_file(m.fs(), m.d, "a");
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(m.fs().sync_directory(m.d)) == ErrorCode::no_space);
  CHECK(error_of(m.fs().make_node({}, m.d, "b", {FileType::regular, 0644, 0, {}})) == ErrorCode::no_space);
  CHECK(ino_of(m.fs(), m.d, "a"));
  m.store().set_hook(nullptr);
  need(m.fs().sync_directory(m.d));
  CHECK(names_in(m.other(), m.d) == std::vector<std::string>{"a"});
  make_file(m.fs(), m.d, "c");
  CHECK(problems(m.volume.cluster()).empty());
}

TEST_CASE("what is changed of an inode that is on its way comes after it") {
  Maker m;
  const auto file = make_file(m.fs(), m.d, "a");
  m.store().set_hook(always_on("create inode", {Fault::Kind::hold}));
  m.fs().tick();
  REQUIRE(m.store().wait_for_held(1));
  auto changed = std::async(std::launch::async, [&] { return m.fs().set_attributes({}, file, with_mode(0600)); });
  m.store().set_hook(nullptr);
  m.store().release_all();
  CHECK(need(changed.get()).attributes.mode == 0600);
  CHECK(need(m.other().lookup(m.d, "a")).attributes.mode == 0600);
}

TEST_CASE("a client that dies leaves nothing of a file that was not stored") {
  Maker m;
  m.unpack("a");
  m.store().crash();
  CHECK(names_in(m.other(), m.d).empty());
  for (unsigned pass = 0; pass < 3; ++pass) collect(m.volume.cluster(), m.volume.clock());
  CHECK(problems(m.volume.cluster()).empty());
}

TEST_CASE("a new file is answered from memory until another client may know of it") {
  Maker m;
  const auto file = m.unpack("a");
  need(m.fs().sync_directory(m.d));
  m.volume.clock().advance(seconds(3));
  need(m.fs().lookup(m.d, "a"));  // Super is read anew
  m.store().reset_record();
  const auto is_from_memory = [&m] {
    const auto reads = m.store().counts().queries;
    need(m.fs().lookup(m.d, "a"));
    return m.store().counts().queries == reads;
  };
  CHECK(is_from_memory());
  SECTION("one that looks it up") {
    need(m.other().lookup(m.d, "a"));
    need(m.other().set_attributes({}, file, with_mode(0444)));
  }
  SECTION("one that lists the directory") {
    names_in(m.other(), m.d);
    need(m.other().set_attributes({}, file, with_mode(0444)));
  }
  SECTION("one that has its number") {
    need(m.other().lookup(file, "."));
    need(m.other().set_attributes({}, file, with_mode(0444)));
  }
  SECTION("one that finds another name of it") {
    need(m.fs().link(file, m.e, "b"));
    need(m.other().lookup(m.e, "b"));
    need(m.other().set_attributes({}, file, with_mode(0444)));
  }
  SECTION("one that finds it in another directory") {
    need(m.fs().rename(m.d, "a", m.e, "a", RenameMode::replace));
    need(m.other().lookup(m.e, "a"));
    need(m.other().set_attributes({}, file, with_mode(0444)));
  }
  CHECK(need(m.fs().get_attributes(file)).attributes.mode == 0444);
}

TEST_CASE("a new file's size and times are known when its lease was released, and taken again") {
  Maker m;
  const auto file = m.unpack("a");
  m.volume.clock().advance(seconds(6));
  m.fs().tick();
  need(m.fs().sync_directory(m.d));
  m.release(file);
  const auto open = need(m.fs().open({}, file, O_RDWR));
  need(m.fs().lookup(m.d, "a"));  // Super is read anew
  m.store().reset_record();
  m.check_unpacked(m.fs(), "a");
  CHECK(m.store().counts().queries == 0);
  need(write_at(m.fs(), open.handle, 5, " more"));
  CHECK(need(m.fs().lookup(m.d, "a")).attributes.size_bytes == 10);
  CHECK(need(m.fs().get_attributes(file)).attributes.size_bytes == 10);
  m.fs().release(open.handle);
  need(m.fs().set_attributes({}, file, with_times(2000)));
  CHECK(need(m.fs().lookup(m.d, "a")).attributes.mtime == TimeSpec{2000, 0});
  CHECK(need(m.other().lookup(m.d, "a")).attributes.mtime == TimeSpec{2000, 0});
}

TEST_CASE("what a write takes away of a new file's mode is not brought back by memory") {
  Maker m;
  const auto made = need(m.fs().create({}, m.d, "a", 06755, O_RDWR | O_CREAT));
  const Ino file = made.entry.attributes.ino;
  const Caller user{.uid = 1000, .gid = 1000};
  need(write_at(m.fs(), made.open.handle, 0, "bytes", user));
  m.fs().release(made.open.handle);
  CHECK(need(m.fs().get_attributes(file)).attributes.mode == 0755);
  m.volume.clock().advance(seconds(6));
  m.fs().tick();
  need(m.fs().sync_directory(m.d));
  CHECK(need(m.fs().lookup(m.d, "a")).attributes.mode == 0755);
}

TEST_CASE("nor by a change of another attribute") {
  Maker m;
  const auto made = need(m.fs().create({}, m.d, "a", 06777, O_RDWR | O_CREAT));
  const Ino file = made.entry.attributes.ino;
  const auto set_attribute = [&](const char* name) {
    need(m.fs().set_xattr(file, name, "1", XattrMode::create_or_replace, SetgidBit::stays));
  };
  set_attribute("user.a");
  const Caller user{.uid = 1000, .gid = 1000};
  need(write_at(m.fs(), made.open.handle, 0, "bytes", user));
  set_attribute("user.b");
  CHECK(need(m.fs().get_attributes(file)).attributes.mode == 0777);
  m.fs().release(made.open.handle);
  m.volume.clock().advance(seconds(6));
  m.fs().tick();
  m.release(file);
  CHECK(need(m.fs().lookup(m.d, "a")).attributes.mode == 0777);
}

TEST_CASE("the time of a rename stays when the lease of the file is released") {
  Maker m;
  const auto made = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT));
  const Ino file = made.entry.attributes.ino;
  need(m.fs().fsync(made.open.handle, false));
  const auto again = need(m.fs().open({}, file, O_RDWR));
  m.volume.clock().advance(seconds(2));
  need(m.fs().rename(m.d, "a", m.d, "b", RenameMode::replace));
  const auto ctime = need(m.fs().get_attributes(file)).attributes.ctime;
  for (const auto handle : {again.handle, made.open.handle}) m.fs().release(handle);
  m.volume.clock().advance(seconds(6));
  m.fs().tick();
  m.release(file);
  CHECK(need(m.fs().get_attributes(file)).attributes.ctime == ctime);
}

TEST_CASE("a file that others write while it is being made has the size that they gave it") {
  Maker m;
  auto options = new_files_behind();
  options.idle_leases = 0;
  options.dirty_limit_bytes = 0;
  auto mount = m.volume.mount(options);
  auto& fs = *mount.file_system;
  const Ino p = make_dir(fs, root_ino, "p");
  need(fs.sync_directory(p));
  need(fs.lookup(root_ino, "p"));
  for (unsigned i = 0; i < 71; ++i) make_file(fs, p, std::to_string(i));
  mount.client->set_hook(before("create inode", [&] {  // the next create makes many of them
    const auto written = std::async(std::launch::async, [&] {
      const auto x = need(fs.lookup(p, "x")).attributes.ino;
      const auto handle = need(fs.open({}, x, O_WRONLY)).handle;
      need(write_at(fs, handle, 0, "bytes"));
      close_file(fs, handle);
    });
    written.wait();
  }));
  const auto x = make_file(fs, p, "x");
  CHECK(need(fs.get_attributes(x)).attributes.size_bytes == 5);
  CHECK(need(fs.lookup(p, "x")).attributes.size_bytes == 5);
}

TEST_CASE("changes of one inode by several threads are all in memory") {
  Maker m;
  for (unsigned i = 0; i < 300; ++i) {
    const auto file = make_file(m.fs(), m.d, "f" + std::to_string(i));
    SetAttributes owner;
    owner.uid = 7;
    auto other = std::async(std::launch::async, [&] { need(m.fs().set_attributes({}, file, owner)); });
    need(m.fs().set_attributes({}, file, with_mode(0600)));
    other.get();
    const auto seen = need(m.fs().get_attributes(file)).attributes;
    REQUIRE(seen.mode == 0600);
    REQUIRE(seen.uid == 7);
  }
}

TEST_CASE("a full store keeps nobody from reading a directory whose names it does not take") {
  Maker m;
  const auto file = m.unpack("a");
  need(m.fs().sync_directory(m.d));
  m.store().set_hook([](const StepInfo& info) {
    if (info.step == "store names") return Fault{Fault::Kind::fail, ErrorCode::no_space};
    const bool tells_who_lives = info.kind == StepKind::query && info.object == format::super_object;
    return tells_who_lives ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  need(m.fs().rename(m.d, "a", m.d, "b", RenameMode::replace));
  make_dir(m.fs(), m.d, "sub");
  CHECK(m.fs().sync_directory(m.d).error().code == ErrorCode::no_space);
  m.volume.clock().advance(seconds(6));  // memory may not answer any more
  CHECK(need(m.fs().lookup(m.d, "b")).attributes.ino == file);
  CHECK(m.fs().lookup(m.d, "a").error().code == ErrorCode::not_found);
  CHECK(need(m.fs().get_attributes(m.d)).attributes.nlink == 2);  // as it is stored
  m.store().set_hook(nullptr);
  need(m.fs().sync_directory(m.d));
  CHECK(need(m.fs().get_attributes(m.d)).attributes.nlink == 3);
  CHECK(need(m.other().lookup(m.d, "b")).attributes.ino == file);
}

TEST_CASE("a directory whose names find no room is listed as it was answered, however long nobody has used it") {
  Maker m;
  const auto g = make_dir(m.other(), root_ino, "g");
  std::set<std::string> names;
  for (unsigned i = 0; i < 1100; ++i) names.insert("old" + std::to_string(i));  // more than the first page
  for (const auto& name : names) make_file(m.other(), g, name);
  for (unsigned i = 0; i < 8; ++i) names.insert("new" + std::to_string(i));
  for (unsigned i = 0; i < 8; ++i) make_file(m.fs(), g, "new" + std::to_string(i));  // it takes the lease
  need(m.fs().sync_directory(g));
  m.store().set_hook(always_on("store names", {Fault::Kind::fail, ErrorCode::no_space}));
  for (const auto& name : {"new1", "old7", "old8", "old9"}) {
    need(m.fs().unlink(g, name));
    names.erase(name);
  }
  make_file(m.fs(), g, "newer");
  names.insert("newer");
  for (unsigned i = 0; i < 30; ++i) {
    m.volume.clock().advance(seconds(1));
    m.fs().tick();
  }
  CHECK_FALSE(ino_of(m.fs(), g, "old7"));
  CHECK(ino_of(m.fs(), g, "newer"));
  const auto listed = names_in(m.fs(), g);
  CHECK(std::set(listed.begin(), listed.end()) == names);
  m.store().set_hook(nullptr);
  need(m.fs().sync_directory(g));
  const auto stored = names_in(m.other(), g);
  CHECK(std::set(stored.begin(), stored.end()) == names);
}

TEST_CASE("what is lost for want of room stands in nobody's way, nor in that of an unmount") {
  Maker m;
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  m.unpack("a");
  const auto open = need(m.fs().create({}, m.d, "open", 0600, O_RDWR | O_CREAT | O_EXCL)).open;
  need(write_at(m.fs(), open.handle, 0, "bytes"));
  make_dir(m.fs(), m.d, "sub");
  const auto seconds_pass = [&m](unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      m.volume.clock().advance(seconds(1));
      m.fs().tick();
    }
  };
  for (unsigned i = 0; i < 5000 && !names_in(m.fs(), m.d).empty(); ++i) {
    seconds_pass(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // what is tried is others' work
  }
  CHECK(names_in(m.fs(), m.d).empty());
  m.store().set_hook(nullptr);
  m.fs().release(open.handle);
  seconds_pass(20);
  const bool is_told = GENERATE(true, false);
  if (is_told) CHECK(error_of(m.fs().sync_directory(m.d)) == ErrorCode::io);
  CHECK(error_of(m.fs().unmount()) == (is_told ? std::nullopt : std::optional(ErrorCode::io)));
  CHECK(problems(m.volume.cluster()).empty());
}

TEST_CASE("a file that found no room for a minute leaves no bytes, though this client goes on") {
  Maker m;
  const auto file = m.unpack("a");
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(m.fs().sync_directory(m.d)) == ErrorCode::no_space);
  REQUIRE(m.has_bytes(file));
  m.seconds_pass_until_lost("a");
  m.seconds_pass(1);
  CHECK_FALSE(m.has_bytes(file));
}

TEST_CASE("nor does what was made after it, was stored, and is lost with it") {
  Maker m;
  const auto refused = m.unpack("b"), directory = make_dir(m.fs(), m.d, "sub"), stored = m.unpack("a");
  m.store().set_hook([object = format::inode_object(refused)](const StepInfo& info) {
    const bool is_refused = info.step == "create inode" && info.object == object;
    return is_refused ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  m.seconds_pass_until_lost("a");
  for (const Ino ino : {directory, stored}) REQUIRE(m.has_stored(ino));
  REQUIRE(m.has_bytes(stored));
  m.seconds_pass(1);
  m.collect_all();
  for (const Ino ino : {directory, stored}) CHECK_FALSE(m.has_stored(ino));
  for (const Ino file : {stored, refused}) CHECK_FALSE(m.has_bytes(file));
  CHECK(m.fs().unmount().error().code == ErrorCode::io);
  CHECK(problems(m.volume.cluster()).empty());
}

TEST_CASE("a directory whose name is lost goes after what was stored in it") {
  Maker m;
  const auto refused = m.unpack("b"), directory = make_dir(m.fs(), m.d, "sub");
  const auto below = need(m.fs().create({}, directory, "below", 0600, O_RDWR | O_CREAT | O_EXCL));
  const Ino file = below.entry.attributes.ino;
  need(write_at(m.fs(), below.open.handle, 0, "bytes"));
  m.store().set_hook([object = format::inode_object(refused)](const StepInfo& info) {
    const bool is_refused = info.step == "create inode" && info.object == object;
    return is_refused ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  CHECK(error_of(m.fs().fsync(below.open.handle, false)) == ErrorCode::no_space);
  m.fs().release(below.open.handle);
  REQUIRE(m.has_stored(file));
  m.seconds_pass_until_lost("sub");
  m.seconds_pass(10);
  TestCollector cannot_read(m.volume.cluster(), m.volume.clock());
  cannot_read.client().set_hook([object = format::inode_object(file)](const StepInfo& info) {
    const bool is_read = info.kind == StepKind::query && info.object == object;
    return is_read ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  static_cast<void>(cannot_read.try_pass());
  cannot_read.client().set_hook(nullptr);
  cannot_read.end();
  m.collect_all();
  CHECK(m.fs().unmount().error().code == ErrorCode::io);
  m.collect_all();
  for (const Ino ino : {directory, file}) CHECK_FALSE(m.has_stored(ino));
  CHECK_FALSE(m.has_bytes(file));
  CHECK(problems(m.volume.cluster()).empty());
}

TEST_CASE("a removal that is lost brings the file back with the bytes that had found no room") {
  Maker m;
  const auto file = m.unpack("x");
  const bool is_stored_before = GENERATE(true, false);
  if (is_stored_before) need(m.fs().sync_directory(m.d));
  const auto handle = open_again(m.fs(), file);
  need(write_at(m.fs(), handle, 0, "other bytes"));
  const auto refused = m.unpack("refused");
  std::atomic<unsigned> writes = 0;
  m.store().set_hook([&writes, object = format::inode_object(refused)](const StepInfo& info) {
    if (info.kind == StepKind::write) ++writes;
    const bool takes_room = info.kind == StepKind::write || (info.step == "create inode" && info.object == object);
    return takes_room ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  m.fs().release(handle);
  need(m.fs().unlink(m.d, "x"));
  for (unsigned i = 0; i < 10000 && writes == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(writes != 0);
  m.seconds_pass(5);
  CHECK(names_in(m.other(), m.d) == std::vector<std::string>{"x"});
  m.seconds_pass(5);
  m.store().set_hook(nullptr);
  const auto theirs = open_again(m.other(), file, O_RDONLY);
  CHECK(need(read_at(m.other(), theirs, 0, 20)) == "other bytes");
  m.other().release(theirs);
}

TEST_CASE("bytes of a file that is lost for want of room stay while it is open") {
  Maker m;
  const auto made = need(m.fs().create({}, m.d, "a", 0600, O_RDWR | O_CREAT | O_EXCL));
  const Ino file = made.entry.attributes.ino;
  need(write_at(m.fs(), made.open.handle, 0, "bytes"));
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(m.fs().fsync(made.open.handle, false)) == ErrorCode::no_space);
  m.seconds_pass_until_lost("a");
  m.seconds_pass(2);
  CHECK(need(read_at(m.fs(), made.open.handle, 0, 10)) == "bytes");
  m.fs().release(made.open.handle);
  for (unsigned i = 0; i < 5000 && m.has_bytes(file); ++i) {
    m.seconds_pass(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK_FALSE(m.has_bytes(file));
}

TEST_CASE("bytes of a file that is lost, and whose inode may be in the store, are a collector's") {
  Maker m;
  const auto file = m.unpack("a");
  std::atomic<unsigned> tries = 0;
  m.store().set_hook([&tries, object = format::inode_object(file)](const StepInfo& info) {
    if (info.object != object) return Fault{};
    if (info.kind == StepKind::query) return Fault{Fault::Kind::fail, ErrorCode::io};
    return tries++ == 0 ? Fault{Fault::Kind::lost_answer_applied} : Fault{};
  });
  m.seconds_pass_until_lost("a");
  m.store().set_hook(nullptr);
  m.seconds_pass(1);
  CHECK(m.has_stored(file));
  CHECK(m.has_bytes(file));
  m.collect_all();
  CHECK_FALSE(m.has_stored(file));
  CHECK_FALSE(m.has_bytes(file));
}

TEST_CASE("an inode whose name was lost is never stored, and who asks is told") {
  Maker m;
  const auto file = make_file(m.fs(), m.d, "a");
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::io}));
  for (unsigned i = 0; i < 12; ++i) {
    m.volume.clock().advance(seconds(1));
    m.fs().tick();
  }
  CHECK(error_of(m.fs().sync_directory(m.d)) == ErrorCode::io);
  m.store().set_hook(nullptr);
  CHECK(error_of(m.fs().get_attributes(file)) == ErrorCode::io);
  CHECK_FALSE(m.has_stored(file));
  make_file(m.fs(), m.d, "b");
  need(m.fs().sync_directory(m.d));
}

TEST_CASE("a file whose name was lost after an append that failed stands in nobody's way, nor in that of an unmount") {
  Maker m;
  const auto made = need(m.fs().create({}, m.d, "a", 0600, O_RDWR | O_CREAT | O_EXCL));
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::io}));
  CHECK(error_of(write_with(O_APPEND | O_DSYNC, m.fs(), made.open.handle, 0, "abc")) == ErrorCode::io);
  for (unsigned i = 0; i < 12; ++i) {
    m.volume.clock().advance(seconds(1));
    m.fs().tick();
  }
  CHECK(error_of(m.fs().sync_directory(m.d)) == ErrorCode::io);
  m.store().set_hook(nullptr);
  CHECK_FALSE(m.has_stored(made.entry.attributes.ino));
  m.fs().release(made.open.handle);
  need(m.fs().unmount());
  CHECK(problems(m.volume.cluster()).empty());
}

TEST_CASE("a file that found no room and was removed stands in nobody's way") {
  Maker m;
  for (const Ino where : {m.d, m.e}) {
    make_file(m.fs(), where, "big");
    need(m.fs().sync_directory(where));
  }
  make_file(m.fs(), m.d, "a");
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  m.fs().tick();
  need(m.fs().unlink(m.d, "a"));
  for (const Ino where : {m.d, m.e}) need(m.fs().unlink(where, "big"));
  for (const Ino where : {m.d, m.e}) need(m.fs().sync_directory(where));
  for (const Ino where : {m.d, m.e}) {
    const auto stored = inode_object_of(m.volume.cluster(), where);
    for (const auto& [key, value] : stored->keys) CHECK_FALSE(key.starts_with("n/"));
  }
}

TEST_CASE("a directory that found no room and was removed stands in nobody's way, and leaves nothing") {
  Maker m;
  for (const Ino where : {m.d, m.e}) {
    make_file(m.fs(), where, "big");
    need(m.fs().sync_directory(where));
  }
  const auto refused = make_dir(m.fs(), m.d, "refused");
  m.store().set_hook([object = format::inode_object(refused)](const StepInfo& info) {
    const bool is_refused = info.step == "create inode" && info.object == object;
    return is_refused ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  if (GENERATE(true, false)) CHECK(error_of(m.fs().sync_directory(m.d)) == ErrorCode::no_space);
  if (GENERATE(true, false)) need(m.fs().rename(m.d, "refused", m.d, "renamed", RenameMode::replace));
  need(m.fs().rmdir(m.d, ino_of(m.fs(), m.d, "refused") ? "refused" : "renamed"));
  for (const Ino where : {m.d, m.e}) need(m.fs().unlink(where, "big"));
  const auto kept = make_dir(m.fs(), m.d, "kept");
  for (const Ino where : {m.d, m.e}) need(m.fs().sync_directory(where));
  CHECK(names_in(m.other(), m.d) == std::vector<std::string>{"kept"});
  CHECK(names_in(m.other(), m.e).empty());
  CHECK(need(m.other().get_attributes(m.d)).attributes.nlink == 3);
  CHECK(error_of(m.fs().create({}, refused, "g", 0644, O_RDWR | O_CREAT)) == ErrorCode::stale);
  m.store().set_hook(nullptr);
  make_file(m.fs(), kept, "g");
  for (unsigned i = 0; i < 20; ++i) {  // its lease is released
    m.volume.clock().advance(seconds(1));
    m.fs().tick();
  }
  CHECK(error_of(m.fs().create({}, refused, "g", 0644, O_RDWR | O_CREAT)) == ErrorCode::stale);
  need(m.fs().unmount());
  CHECK_FALSE(m.has_stored(refused));
  CHECK(problems(m.volume.cluster()).empty());
}

TEST_CASE("a removed directory that finds room once its removal is on its way is a collector's") {
  Maker m;
  const auto refused = make_dir(m.fs(), m.d, "refused");
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(m.fs().sync_directory(m.d)) == ErrorCode::no_space);
  need(m.fs().rmdir(m.d, "refused"));
  m.store().set_hook(always_on("store names", {Fault::Kind::hold}));
  auto synced = std::async(std::launch::async, [&] { return m.fs().sync_directory(m.d); });
  REQUIRE(m.store().wait_for_held(1));
  need(m.fs().get_attributes(refused));
  REQUIRE(m.has_stored(refused));
  m.store().set_hook(nullptr);
  m.store().release_all();
  need(synced.get());
  for (unsigned i = 0; i < 20; ++i) {  // its lease is released
    m.volume.clock().advance(seconds(1));
    m.fs().tick();
  }
  need(m.fs().unmount());
  for (unsigned pass = 0; pass < 3; ++pass) collect(m.volume.cluster(), m.volume.clock());
  CHECK_FALSE(m.has_stored(refused));
  CHECK(problems(m.volume.cluster()).empty());
}

TEST_CASE("another client that looks waits for no room: what finds none is lost") {
  Maker m;
  make_file(m.fs(), m.d, "old");
  need(m.fs().sync_directory(m.d));
  make_file(m.fs(), m.d, "a");
  m.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(names_in(m.other(), m.d) == std::vector<std::string>{"old"});
  m.store().set_hook(nullptr);
  CHECK(error_of(m.fs().sync_directory(m.d)) == ErrorCode::io);
  CHECK(names_in(m.fs(), m.d) == std::vector<std::string>{"old"});
}

TEST_CASE("a temporary file that is removed before it is stored costs its share of a batch") {
  Maker m;
  m.unpack("a");
  need(m.fs().unlink(m.d, "a"));
  m.let_it_be_stored();
  const auto trace = m.store().trace();
  CHECK(std::ranges::none_of(trace, [](const auto& step) {
    return step.starts_with("create inode") || step.starts_with("write ") || step.starts_with("release lease");
  }));
  const auto stored = inode_object_of(m.volume.cluster(), m.d);
  CHECK(std::ranges::none_of(stored->keys, [](const auto& key) { return key.first.starts_with("d/"); }));
  CHECK(problems(m.volume.cluster()).empty());
}

// ---- files that are closed before they are stored

namespace {

std::vector<std::string> steps_on(const Maker& m, Ino ino) {
  std::vector<std::string> steps;
  for (const auto& line : m.holder.client->trace()) {
    if (line.ends_with(format::inode_object(ino))) steps.push_back(line.substr(0, line.find(" Inode")));
  }
  return steps;
}

}  // namespace

TEST_CASE("a file that is closed and empty when it is stored is made by one step, without a lease") {
  Maker m;
  const auto made = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT));
  const Ino file = made.entry.attributes.ino;
  need(m.fs().flush(made.open.handle));
  m.fs().release(made.open.handle);
  need(m.fs().set_attributes({}, file, with_times(1000)));
  need(m.fs().sync_directory(m.d));
  CHECK_FALSE(inode_object_of(m.volume.cluster(), file)->xattrs.contains(format::xattr::lease));
  CHECK(need(m.fs().get_attributes(file)).attributes.mtime == TimeSpec{1000, 0});
  m.let_it_be_stored();
  CHECK(steps_on(m, file) == std::vector<std::string>{"create inode"});
  CHECK(need(m.other().lookup(m.d, "a")).attributes.mtime == TimeSpec{1000, 0});
  const auto opened = need(m.other().open({}, file, O_WRONLY));
  need(write_at(m.other(), opened.handle, 0, "theirs"));
  m.other().release(opened.handle);
  CHECK(problems(m.volume.cluster()).empty());
}

TEST_CASE("so many files can be made and closed without waiting for the store") {
  Maker m;
  const auto most = new_files_behind().idle_leases;
  for (unsigned i = 0; i < most / 2; ++i) {
    const auto made = need(m.fs().create({}, m.d, std::to_string(i), 0644, O_RDWR | O_CREAT));
    need(m.fs().flush(made.open.handle));
    m.fs().release(made.open.handle);
  }
  need(m.fs().sync_directory(m.d));
  const auto trace = m.store().trace();
  CHECK(std::ranges::none_of(trace, [](const auto& step) { return step.starts_with("release lease"); }));
}

TEST_CASE("a file that is open for writing, or has many bytes to be stored, is stored with its lease") {
  Maker m;
  const auto made = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT));
  const Ino file = made.entry.attributes.ino;
  const bool has_bytes = GENERATE(false, true);
  if (has_bytes) {
    need(write_at(m.fs(), made.open.handle, 0, std::string((64 << 10) + 1, 'x')));
    m.fs().release(made.open.handle);
  }
  need(m.fs().sync_directory(m.d));
  CHECK(inode_object_of(m.volume.cluster(), file)->xattrs.contains(format::xattr::lease));
}

TEST_CASE("a new file that was closed can be written again before and after it is stored") {
  Maker m;
  const auto made = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT));
  const Ino file = made.entry.attributes.ino;
  m.fs().release(made.open.handle);
  if (GENERATE(false, true)) need(m.fs().sync_directory(m.d));
  const auto again = need(m.fs().open({}, file, O_RDWR));
  need(write_at(m.fs(), again.handle, 0, "bytes"));
  m.fs().release(again.handle);
  CHECK(need(m.other().lookup(m.d, "a")).attributes.size_bytes == 5);
  CHECK(need(m.fs().lookup(m.d, "a")).attributes.size_bytes == 5);
}

// ---- moved files

namespace {

/// A file that is stored, and then moved.
struct Moved : Maker {
  Ino file = unpack("a");
  TimeSpec time;

  Moved() {
    volume.clock().advance(seconds(6));
    fs().tick();
    need(fs().sync_directory(d));
    release(file);
    need(fs().lookup(d, "a"));  // Super is read anew
    volume.clock().advance(seconds(1));
    store().reset_record();
    time = volume.clock().wall_time();
    need(fs().rename(d, "a", d, "b", RenameMode::replace));
  }
  std::ptrdiff_t times_set() {
    const auto trace = store().trace();
    return std::ranges::count(trace, step_on("set ctime", file));
  }
  TimeSpec seen_by(FileSystem& fs) { return need(fs.get_attributes(file)).attributes.ctime; }
};

}  // namespace

TEST_CASE("the ctime of a file that was moved is stored some seconds later, and known until then") {
  Moved m;
  CHECK(m.seen_by(m.fs()) == m.time);
  need(m.fs().sync_directory(m.d));
  for (unsigned i = 0; i < 5; ++i) m.fs().tick();
  CHECK(m.times_set() == 0);
  m.fs().tick();
  for (unsigned i = 0; i < 10000 && m.times_set() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(m.times_set() == 1);
  CHECK(m.seen_by(m.other()) == m.time);
}

TEST_CASE("of many moves of a file one ctime is stored") {
  Moved m;
  for (unsigned i = 0; i < 10; ++i) {
    m.volume.clock().advance(std::chrono::milliseconds(10));
    need(m.fs().rename(m.d, "b", m.d, "c", RenameMode::replace));
    need(m.fs().rename(m.d, "c", m.d, "b", RenameMode::replace));
  }
  need(m.fs().unmount());
  CHECK(m.times_set() == 1);
  CHECK(m.seen_by(m.other()) == m.volume.clock().wall_time());
}

TEST_CASE("a ctime is stored before another client finds the new name, and at fsync of the file") {
  Moved m;
  SECTION("it looks the name up") { CHECK(need(m.other().lookup(m.d, "b")).attributes.ctime == m.time); }
  SECTION("the file is synced") {
    const auto opened = need(m.fs().open({}, m.file, O_RDWR));
    m.store().reset_record();
    need(m.fs().rename(m.d, "b", m.d, "a", RenameMode::replace));
    need(m.fs().fsync(opened.handle, false));
    CHECK(m.times_set() == 1);
    m.fs().release(opened.handle);
  }
  CHECK(m.times_set() == 1);
  CHECK(m.seen_by(m.other()) == m.time);
}

TEST_CASE("the ctime of a file that is removed after it was moved is never stored") {
  Moved m;
  need(m.fs().unlink(m.d, "b"));
  need(m.fs().unmount());
  CHECK(m.times_set() == 0);
}

TEST_CASE("a change of a file that was moved comes after that ctime") {
  Moved m;
  m.volume.clock().advance(seconds(1));
  need(m.fs().set_attributes({}, m.file, with_mode(0600)));
  CHECK(steps_on(m, m.file).front() == "set ctime");
  need(m.fs().unmount());
  CHECK(m.times_set() == 1);
  CHECK(m.seen_by(m.other()) == m.volume.clock().wall_time());
}

TEST_CASE("where others see a new name without asking, its ctime does not wait") {
  TestVolume volume;
  auto options = new_files_behind();
  options.names_behind = false;
  const auto holder = volume.mount(options), visitor = volume.mount();
  const Ino d = make_dir(*holder.file_system, root_ino, "d"), file = make_file(*holder.file_system, d, "a");
  volume.clock().advance(seconds(1));
  const auto time = volume.clock().wall_time();
  need(holder.file_system->rename(d, "a", d, "b", RenameMode::replace));
  need(holder.file_system->get_attributes(file));
  CHECK(need(visitor.file_system->lookup(d, "b")).attributes.ctime == time);
}

TEST_CASE("the ctime of a file that others know does not wait, nor go back behind their changes") {
  Moved m;
  need(m.other().lookup(m.d, "b"));
  for (const char* name : {"1", "2", "3", "4", "5"}) {
    m.volume.clock().advance(seconds(2));
    make_file(m.fs(), m.d, name);
  }
  need(m.fs().lookup(m.d, "b"));
  m.store().reset_record();
  need(m.fs().rename(m.d, "b", m.d, "c", RenameMode::replace));
  for (unsigned i = 0; i < 10000 && m.times_set() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(m.times_set() == 1);
}

TEST_CASE("a ctime that does not get stored keeps no other client out of the directory") {
  Moved m;
  m.store().set_hook(once_on("set ctime", {Fault::Kind::hold}));
  auto found = std::async(std::launch::async, [&m] { return m.other().lookup(m.d, "b"); });
  REQUIRE(m.store().wait_for_held(1));
  const auto is_found = [&found] { return found.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready; };
  for (unsigned i = 0; i < 20'000 && !is_found(); ++i) m.volume.clock().advance(std::chrono::milliseconds(15));
  CHECK(is_found());
  m.store().set_hook(nullptr);
  m.store().release_all();
  need(found.get());
}

TEST_CASE("a file keeps its lease until who has made it has opened it, however long that takes") {
  constexpr unsigned others = 10;  // when these are released, it would be, too
  std::atomic<bool> is_to_stand_still = false;
  Maker m;
  const auto leases = [&m] { return m.fs().counts().leases; };
  m.volume.clock().before_wall_time = [&m, &is_to_stand_still, leases] {
    const bool is_born = is_to_stand_still && leases() == others + 1;
    if (!is_born || !is_to_stand_still.exchange(false)) return;
    for (unsigned i = 0; i < 2; ++i) {
      m.volume.clock().advance(seconds(6));
      m.fs().tick();
    }
    for (unsigned i = 0; i < 10000 && leases() > 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    need(m.other().lookup(m.d, "1"));
  };
  for (unsigned i = 0; i < others; ++i) m.unpack(std::to_string(i));
  is_to_stand_still = true;
  const auto made = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT));
  REQUIRE_FALSE(is_to_stand_still);
  need(write_at(m.fs(), made.open.handle, 0, "bytes"));
  need(m.fs().fsync(made.open.handle, false));
  CHECK(inode_object_of(m.volume.cluster(), made.entry.attributes.ino)->xattrs.contains(format::xattr::lease));
  CHECK(need(m.other().lookup(m.d, "a")).attributes.size_bytes == 5);
}

// ---- what memory knows, the thread that receives requests may answer

TEST_CASE("what memory knows of a name is answered at once, and of others nothing is") {
  Maker m;
  const auto file = m.unpack("a");
  const auto known = known_entry(m.fs(), m.d, "a");
  REQUIRE(known.has_value());
  CHECK(need(*known).attributes.ino == file);
  const auto missing = known_entry(m.fs(), m.d, "b");
  REQUIRE(missing.has_value());
  CHECK(missing->error().code == ErrorCode::not_found);
  CHECK(m.fs().known_attributes(file)->attributes.size_bytes == 5);
  CHECK(m.fs().known_attributes(m.d).has_value());
  CHECK_FALSE(known_entry(m.fs(), m.d, ".").has_value());
  CHECK_FALSE(known_entry(m.fs(), m.d, "..").has_value());
  CHECK_FALSE(known_entry(m.fs(), m.d, std::string(256, 'x')).has_value());
  CHECK(m.store().counts().queries == 0);
  need(m.other().lookup(m.d, "a"));
  CHECK_FALSE(known_entry(m.fs(), m.d, "a").has_value());
  CHECK_FALSE(known_entry(m.fs(), m.d, "b").has_value());
  CHECK_FALSE(m.fs().known_attributes(file).has_value());
}

TEST_CASE("a file that got another name is not known at once") {
  Maker m;
  const auto file = m.unpack("a");
  const auto linked = need(m.fs().link(file, m.e, "b")).attributes;
  CHECK(linked.nlink == 2);
  CHECK_FALSE(m.fs().known_attributes(file).has_value());
  m.store().reset_record();
  CHECK(need(known_entry(m.fs(), m.d, "a").value()).attributes.nlink == 2);
  CHECK(m.store().counts().queries == 1);
}

TEST_CASE("a close that has nothing to do is answered at once") {
  Maker m;
  const auto made = need(m.fs().create({}, m.d, "a", 0644, O_RDWR | O_CREAT));
  const auto handle = made.open.handle;
  need(write_at(m.fs(), handle, 0, "bytes"));
  CHECK(m.fs().known_flush(handle).has_value());
  const auto reader = need(m.fs().open({}, made.entry.attributes.ino, O_RDONLY));
  CHECK(m.fs().known_flush(reader.handle).has_value());
  SECTION("not where locks may have to be dropped") {
    need(set_lock(m.fs(), exclusive(handle, 1, 0, 10)));
    CHECK_FALSE(m.fs().known_flush(handle).has_value());
    CHECK_FALSE(m.fs().known_flush(reader.handle).has_value());
  }
  SECTION("not where the file is used elsewhere: it is stored first") {
    need(m.fs().sync_directory(m.d));
    const auto theirs = need(m.other().open({}, made.entry.attributes.ino, O_RDONLY));
    need(write_at(m.fs(), handle, 0, "again"));
    CHECK_FALSE(m.fs().known_flush(handle).has_value());
    m.other().release(theirs.handle);
  }
  CHECK_FALSE(m.fs().known_flush(HandleId{12345}).has_value());
}
