// SPDX-License-Identifier: LGPL-2.1-or-later
// Files that their maker unlinks and removes itself, with no collector (src/fs/removals.h).
#include <fcntl.h>

#include <algorithm>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "format/object_names.h"
#include "format/records.h"
#include "support/catch.h"
#include "support/collecting.h"
#include "support/fake_clock.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;
using std::chrono::seconds;

namespace {

/// A client that writes names behind, with a directory of its own, and another client.
struct Remover {
  TestVolume volume{small_objects()};
  Mount visitor = volume.mount();
  Mount holder = volume.mount(new_files_behind());
  Ino d = make_dir(fs(), root_ino, "d");

  Remover() { need(fs().sync_directory(d)); }
  FileSystem& fs() { return *holder.file_system; }
  FileSystem& other() { return *visitor.file_system; }
  ScriptedClient& store() { return *holder.client; }
  bool has(Ino file) { return inode_object_of(volume.cluster(), file).has_value(); }
  bool has_bytes(Ino file) {
    return object_names(volume.cluster()).contains(format::data_object(file, ObjectIndex{0}));
  }

  /// In the store, with its name, and nobody's lease.
  Ino stored_file(const std::string& name, const std::string& bytes = "bytes") {
    const auto made = need(fs().create({}, d, name, 0600, O_WRONLY | O_CREAT | O_EXCL));
    if (!bytes.empty()) need(write_at(fs(), made.open.handle, 0, bytes));
    need(fs().flush(made.open.handle));
    fs().release(made.open.handle);
    need(fs().sync_directory(d));
    store().reset_record();
    return made.entry.attributes.ino;
  }
  void unlink(const std::string& name) {
    need(fs().unlink(d, name));
    need(fs().sync_directory(d));
    store().reset_record();
  }
  std::vector<std::string> steps_of_a_tick() {
    store().reset_record();
    fs().tick();
    return store().trace();
  }
  void collect_all() {
    fs().tick();
    for (unsigned pass = 0; pass < 3; ++pass) {
      volume.clock().advance(seconds(120));
      collect(volume.cluster(), volume.clock());
    }
  }
};

}  // namespace

TEST_CASE("a small file is removed by who made and unlinked it: 1 read, 3 steps, and its share of one for many") {
  Remover r;
  const auto a = r.stored_file("a"), b = r.stored_file("b");
  r.unlink("a");
  r.unlink("b");
  const auto remove = [](Ino file) { return "remove " + format::data_object(file, ObjectIndex{0}); };
  std::vector<std::string> steps;
  for (const Ino file : {a, b}) {
    const auto dead = step_on("mark unnamed dead", file), gone = step_on("remove dead inode", file);
    steps.insert(steps.end(), {step_on("query", file), dead, remove(file), gone});
  }
  steps.push_back(step_on("remove traces", r.d));
  CHECK(r.steps_of_a_tick() == steps);
  for (const Ino file : {a, b}) {
    CHECK_FALSE(r.has(file));
    CHECK_FALSE(r.has_bytes(file));
  }
  CHECK(problems(r.volume.cluster()).empty());
  CHECK(r.steps_of_a_tick().empty());
}

TEST_CASE("so is one that a rename replaces") {
  Remover r;
  const auto replaced = r.stored_file("a"), moved = r.stored_file("b");
  need(r.fs().rename(r.d, "b", r.d, "a", RenameMode::replace));
  need(r.fs().sync_directory(r.d));
  r.fs().tick();
  CHECK_FALSE(r.has(replaced));
  CHECK_FALSE(r.has_bytes(replaced));
  CHECK(r.has_bytes(moved));
}

TEST_CASE("a lease in the store is no hindrance if it is ours and void, and is one if it is another client's") {
  Remover r;
  const bool is_ours = GENERATE(true, false);
  const auto file = r.stored_file("a");
  const auto leased = inode_object_of(r.volume.cluster(), r.d)->xattrs.at(format::xattr::lease);
  const auto holder = format::decode<format::DirectoryLeaseRecord>(leased);
  constexpr std::uint64_t another = 1;  // the root's number: no instance ever has it
  r.volume.cluster().with_objects([&](scripted::Objects& objects) {
    objects.metadata().at(format::inode_object(file)).xattrs[format::xattr::lease] =
        format::encode(format::NumberRecord{is_ours ? holder->token.instance.value : another});
  });
  r.unlink("a");
  r.fs().tick();
  CHECK(r.has(file) != is_ours);
  CHECK(r.has_bytes(file) != is_ours);
}

TEST_CASE("a removal begins once the store has lost the name") {
  Remover r;
  const auto file = r.stored_file("a");
  r.store().set_hook(always_on("store names", {Fault::Kind::hold}));
  need(r.fs().unlink(r.d, "a"));
  r.fs().tick();
  REQUIRE(r.store().wait_for_held(1));
  r.fs().tick();
  CHECK(r.has_bytes(file));
  r.store().set_hook(nullptr);
  r.store().release_all();
  r.fs().tick();
  CHECK_FALSE(r.has(file));
}

TEST_CASE("what another client may have come by is left to a collector") {
  Remover r;
  const auto file = r.stored_file("a");
  need(r.other().lookup(r.d, "a"));
  r.volume.clock().advance(seconds(2));  // then the directory may be held again
  for (unsigned i = 0; i < 5; ++i) make_file(r.fs(), r.d, std::to_string(i));
  r.store().reset_record();
  need(r.fs().unlink(r.d, "a"));
  REQUIRE(r.store().trace() == std::vector{step_on("query", file)});  // answered before it is stored
  need(r.fs().sync_directory(r.d));
  const auto steps = r.steps_of_a_tick();
  CHECK(std::ranges::count(steps, step_on("query", file)) == 0);
  const auto open = need(r.other().open({}, file, O_RDONLY));
  CHECK(need(read_at(r.other(), open.handle, 0, 10)) == "bytes");
  r.other().release(open.handle);
  r.collect_all();
  CHECK_FALSE(r.has(file));
}

TEST_CASE("so is what came by a file handle") {
  Remover r;
  const auto file = r.stored_file("a");
  need(r.other().lookup(file, "."));
  r.unlink("a");
  CHECK(r.steps_of_a_tick().empty());
  CHECK(r.has(file));
}

TEST_CASE("a file that was opened here while its name went stays whole, and is left to a collector") {
  Remover r;
  const auto file = r.stored_file("a");
  need(r.fs().unlink(r.d, "a"));
  const auto open = need(r.fs().open({}, file, O_RDWR));
  need(r.fs().sync_directory(r.d));
  r.fs().tick();
  CHECK(need(read_at(r.fs(), open.handle, 0, 10)) == "bytes");
  need(write_at(r.fs(), open.handle, 5, " and more"));
  need(r.fs().fsync(open.handle, false));
  CHECK(need(read_at(r.fs(), open.handle, 0, 20)) == "bytes and more");
  r.fs().release(open.handle);
  r.volume.clock().advance(seconds(6));
  r.fs().tick();
  need(r.fs().unmount());
  r.collect_all();
  CHECK_FALSE(r.has(file));
  CHECK_FALSE(r.has_bytes(file));
}

TEST_CASE("a file that is in use when its turn comes is tried again, and then left to a collector") {
  Remover r;
  const auto file = r.stored_file("a");
  const unsigned ticks_in_use = GENERATE(1U, 9U, 10U);
  need(r.fs().unlink(r.d, "a"));
  const auto open = need(r.fs().open({}, file, O_RDONLY));
  need(r.fs().sync_directory(r.d));
  for (unsigned i = 0; i < ticks_in_use; ++i) CHECK(r.steps_of_a_tick().empty());
  r.fs().release(open.handle);
  r.fs().tick();
  CHECK(r.has(file) == (ticks_in_use == 10));
}

TEST_CASE("a file whose bytes find no room is removed though they still do not") {
  Remover r;
  const auto made = need(r.fs().create({}, r.d, "a", 0600, O_WRONLY | O_CREAT | O_EXCL));
  const auto file = made.entry.attributes.ino;
  need(write_at(r.fs(), made.open.handle, 0, "bytes"));
  need(r.fs().fsync(made.open.handle, false));
  need(write_at(r.fs(), made.open.handle, object_bytes, "more"));
  r.store().set_hook(always_on("write", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(r.fs().fsync(made.open.handle, false)) == ErrorCode::no_space);
  r.fs().release(made.open.handle);
  need(r.fs().unlink(r.d, "a"));
  need(r.fs().sync_directory(r.d));
  for (unsigned i = 0; i < 3000 && r.fs().counts().leases != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(r.fs().counts().leases == 0);
  r.fs().tick();
  CHECK_FALSE(r.has(file));
  CHECK_FALSE(r.has_bytes(file));
}

TEST_CASE("nobody comes to an inode while it is removed, and a collector may remove it meanwhile") {
  Remover r;
  const auto file = r.stored_file("a");
  r.unlink("a");
  const bool is_collected = GENERATE(true, false);
  r.store().set_hook(always_on("remove", {Fault::Kind::hold}));
  r.fs().tick();
  REQUIRE(r.store().wait_for_held(1));
  CHECK(error_of(r.fs().open({}, file, O_RDWR)) == ErrorCode::stale);
  CHECK(error_of(r.fs().lookup(file, ".")) == ErrorCode::stale);
  CHECK(error_of(r.fs().link(file, r.d, "again")) == ErrorCode::stale);
  CHECK(error_of(r.other().lookup(file, ".")) == ErrorCode::stale);
  CHECK(error_of(r.other().open({}, file, O_RDWR)) == ErrorCode::stale);
  r.volume.clock().advance(seconds(120));
  if (is_collected) collect(r.volume.cluster(), r.volume.clock());
  r.store().set_hook(nullptr);
  r.store().release_all();
  CHECK_FALSE(r.has(file));
  CHECK_FALSE(r.has_bytes(file));
  CHECK(traces_left(r.volume.cluster()).empty());
  CHECK(names_in(r.fs(), r.d).empty());
}

TEST_CASE("a mount ends though data of a file that it removes does not answer, and a collector removes the file") {
  const bool is_answered_late = GENERATE(true, false);
  Remover r;
  const auto file = r.stored_file("a");
  r.unlink("a");
  r.store().set_hook(always_on("remove", {Fault::Kind::hold}));
  r.fs().tick();
  REQUIRE(r.store().wait_for_held(1));
  auto ended = std::async(std::launch::async, [&r] {
    need(r.fs().unmount());
    r.holder.file_system.reset();
  });
  CHECK(ended.wait_for(seconds(60)) == std::future_status::ready);
  if (is_answered_late) r.store().release_all();
  for (unsigned pass = 0; pass < 3; ++pass) {
    r.volume.clock().advance(seconds(120));
    collect(r.volume.cluster(), r.volume.clock());
  }
  r.store().release_all();
  ended.get();
  CHECK_FALSE(r.has(file));
  CHECK_FALSE(r.has_bytes(file));
  CHECK(traces_left(r.volume.cluster()).empty());
}

TEST_CASE("a file that is opened before its inode dies stays whole, and is left to a collector") {
  Remover r;
  const auto file = r.stored_file("a");
  r.unlink("a");
  std::optional<OpenReply> open;
  r.store().set_hook([&](const StepInfo& info) {
    if (info.step == "mark unnamed dead") open = need(r.fs().open({}, file, O_RDONLY));
    return Fault{};
  });
  r.fs().tick();
  r.store().set_hook(nullptr);
  REQUIRE(open);
  CHECK(need(read_at(r.fs(), open->handle, 0, 10)) == "bytes");
  r.collect_all();
  CHECK(r.has_bytes(file));
  r.fs().release(open->handle);
  r.collect_all();
  CHECK_FALSE(r.has(file));
}

TEST_CASE("what was changed since the read is left to a collector, whole") {
  Remover r;
  const auto file = r.stored_file("a");
  r.unlink("a");
  auto changer = r.volume.mount();
  r.store().set_hook(once_on("mark unnamed dead", {Fault::Kind::hold}));
  r.fs().tick();
  REQUIRE(r.store().wait_for_held(1));
  SetAttributes mode;
  mode.mode = 0640;
  need(changer->set_attributes({}, file, mode));
  r.store().release_all();
  CHECK(r.has_bytes(file));
  r.collect_all();
  CHECK_FALSE(r.has(file));
}

TEST_CASE("pipes are left to a collector: they may be open without a word") {
  Remover r;
  const auto pipe = need(r.fs().make_node({}, r.d, "pipe", {FileType::fifo, 0600, 0, {}})).attributes.ino;
  need(r.fs().sync_directory(r.d));
  r.unlink("pipe");
  r.fs().tick();
  CHECK(r.has(pipe));
}

TEST_CASE("where another client asks for the directory, what has not begun is left to a collector") {
  Remover r;
  const auto file = r.stored_file("a");
  r.unlink("a");
  CHECK(names_in(r.other(), r.d).empty());
  CHECK(r.steps_of_a_tick().empty());
  CHECK(r.has(file));
  r.collect_all();
  CHECK_FALSE(r.has(file));
}

TEST_CASE("what cannot be removed is left to a collector") {
  Remover r;
  const auto file = r.stored_file("a");
  r.unlink("a");
  r.store().set_hook(once_on(GENERATE("remove", "remove dead inode", "mark unnamed dead", "query"),
                             {Fault::Kind::fail, ErrorCode::io}));
  r.fs().tick();
  r.store().set_hook(nullptr);
  r.collect_all();
  CHECK_FALSE(r.has(file));
  CHECK_FALSE(r.has_bytes(file));
  CHECK(traces_left(r.volume.cluster()).empty());
}

TEST_CASE("a file of many objects is left to a collector") {
  Remover r;
  const auto file = r.stored_file("a", std::string(65 * object_bytes, 'x'));
  need(r.fs().unmount());
  r.collect_all();
  CHECK(r.has(file));
}

TEST_CASE("of a tree that is removed, directories alone are left to a collector") {
  Remover r;
  const auto sub = make_dir(r.fs(), r.d, "sub");
  for (unsigned i = 0; i < 10; ++i) make_file(r.fs(), sub, std::to_string(i));
  need(r.fs().sync_directory(sub));
  for (unsigned i = 0; i < 10; ++i) need(r.fs().unlink(sub, std::to_string(i)));
  need(r.fs().rmdir(r.d, "sub"));
  need(r.fs().sync_directory(r.d));
  r.fs().tick();
  r.fs().tick();
  std::set<std::string> inodes;
  for (const auto& object : object_names(r.volume.cluster())) {
    if (object.starts_with("Inode.")) inodes.insert(object);
  }
  CHECK(inodes == std::set{format::inode_object(root_ino), format::inode_object(r.d), format::inode_object(sub)});
}

TEST_CASE("so many begin in a second, and no more") {
  Remover r;
  constexpr unsigned files = 1100;
  for (unsigned i = 0; i < files; ++i) make_file(r.fs(), r.d, std::to_string(i));
  need(r.fs().sync_directory(r.d));
  for (unsigned i = 0; i < files; ++i) need(r.fs().unlink(r.d, std::to_string(i)));
  need(r.fs().sync_directory(r.d));
  const auto removed_in_a_tick = [&] {
    const auto steps = r.steps_of_a_tick();
    return std::ranges::count_if(steps, [](const auto& step) { return step.starts_with("remove dead inode"); });
  };
  CHECK(removed_in_a_tick() == 1024);
  CHECK(removed_in_a_tick() == files - 1024);
}

TEST_CASE("an unmount leaves what has not begun to a collector") {
  Remover r;
  const auto file = r.stored_file("a");
  need(r.fs().unlink(r.d, "a"));
  need(r.fs().unmount());
  CHECK(r.has(file));
  r.volume.clock().advance(seconds(120));
  for (unsigned pass = 0; pass < 3; ++pass) collect(r.volume.cluster(), r.volume.clock());
  CHECK_FALSE(r.has(file));
}
