// SPDX-License-Identifier: LGPL-2.1-or-later
// Names that are changed before the store has it: what that costs, when it is stored, and what others see of it.
#include <fcntl.h>

#include <future>
#include <thread>

#include "fs/held_directories.h"
#include "fs/name_log.h"
#include "instance/liveness_poll.h"
#include "support/acls.h"
#include "support/catch.h"
#include "support/collecting.h"
#include "support/fake_clock.h"
#include "support/file_calls.h"
#include "support/instances.h"
#include "support/lock_calls.h"
#include "support/log_lines.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;
using std::chrono::seconds;

namespace {

using Trace = std::vector<std::string>;

FileSystemOptions behind() {
  FileSystemOptions options;
  options.lease_after_changes = 4;
  options.names_behind = true;
  return options;
}

/// One that writes names behind, in two directories of its own, and another client.
struct Behind {
  TestVolume volume;
  Mount visitor = volume.mount();
  Mount holder;
  Ino d = make_dir(fs(), root_ino, "d"), e = make_dir(fs(), root_ino, "e");

  explicit Behind(const FileSystemOptions& options = behind()) : holder(volume.mount(options)) {
    for (const Ino where : {d, e}) {  // its attributes are in memory, and a collector knows of it
      make_file(fs(), where, "0");
      need(fs().unlink(where, "0"));
      need(fs().sync_directory(where));
    }
    need(fs().lookup(root_ino, "d"));
    store().reset_record();
  }
  FileSystem& fs() { return *holder.file_system; }
  FileSystem& other() { return *visitor.file_system; }
  ScriptedClient& store() { return *holder.client; }
  bool is_stored(Ino where, const std::string& name) {
    const auto object = inode_object_of(volume.cluster(), where);
    return std::ranges::any_of(object->keys, [&name](const auto& key) {
      const auto parsed = format::parse_entry_key(key.first);
      return parsed && parsed->name == name;
    });
  }
  /// To each batch on that directory.
  void happens_to_batches_of(Ino where, Fault fault) {
    store().set_hook([object = format::inode_object(where), fault](const StepInfo& info) {
      return info.step == "store names" && info.object == object ? fault : Fault{};
    });
  }
  /// In each of which what is left is sent.
  void seconds_pass(unsigned how_many) {
    for (unsigned i = 0; i < how_many; ++i) {
      volume.clock().advance(seconds(1));
      fs().tick();
    }
  }
  /// As long as it is so: what is tried is others' work.
  void seconds_pass_while(const std::function<bool()>& is_so) {
    for (unsigned i = 0; i < 5000 && is_so(); ++i) {
      seconds_pass(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  /// Its lease is another's meanwhile, and free again.
  void loses_its_lease(Ino where) {
    volume.cluster().with_objects([&](scripted::Objects& objects) {
      auto& object = objects.metadata().at(format::inode_object(where));
      object.xattrs.erase(format::xattr::lease);
      ++object.version;
    });
  }
};

}  // namespace

TEST_CASE("a new file and its names cost nothing before the answer") {
  Behind b;
  const auto file = make_file(b.fs(), b.d, "a");
  need(b.fs().rename(b.d, "a", b.d, "b", RenameMode::replace));
  CHECK(ino_of(b.fs(), b.d, "b") == file);
  CHECK_FALSE(ino_of(b.fs(), b.d, "a"));
  need(b.fs().unlink(b.d, "b"));
  CHECK(b.store().trace().empty());
  CHECK_FALSE(ino_of(b.fs(), b.d, "b"));
}

TEST_CASE("what fsync of a directory stores is one step after the inodes that are left, whatever was done there") {
  Behind b;
  for (const char* name : {"1", "2", "3", "4", "5"}) make_file(b.fs(), b.d, name);
  need(b.fs().unlink(b.d, "2"));
  need(b.fs().rename(b.d, "3", b.d, "4", RenameMode::replace));
  CHECK_FALSE(b.is_stored(b.d, "1"));
  b.store().reset_record();
  need(b.fs().sync_directory(b.d));
  const auto trace = b.store().trace();
  CHECK(trace.size() == 4);
  CHECK(trace.back() == step_on("store names", b.d));
  for (const char* name : {"1", "4", "5"}) CHECK(b.is_stored(b.d, name));
  for (const char* name : {"2", "3"}) CHECK_FALSE(b.is_stored(b.d, name));
  CHECK(names_in(b.fs(), b.d) == std::vector<std::string>{"1", "4", "5"});
}

TEST_CASE("fsync of a file stores its name, and so does an open for synchronous writes") {
  Behind b;
  const auto made = need(b.fs().create({}, b.d, "a", 0644, O_RDWR | O_CREAT));
  CHECK_FALSE(b.is_stored(b.d, "a"));
  need(b.fs().fsync(made.open.handle, false));
  CHECK(b.is_stored(b.d, "a"));
  const auto synchronous = need(b.fs().create({}, b.d, "b", 0644, O_RDWR | O_CREAT | O_DSYNC));
  CHECK(b.is_stored(b.d, "b"));
  for (const auto handle : {made.open.handle, synchronous.open.handle}) b.fs().release(handle);
}

TEST_CASE("a direct write that asks to be synced stores the name of its file, too, and one that does not leaves it") {
  Behind b;
  const auto made = need(b.fs().create({}, b.d, "a", 0644, O_RDWR | O_CREAT | O_DIRECT));
  need(write_with(O_DIRECT, b.fs(), made.open.handle, 0, "bytes"));
  CHECK_FALSE(b.is_stored(b.d, "a"));
  need(write_with(O_DIRECT | O_DSYNC, b.fs(), made.open.handle, 0, "bytes"));
  CHECK(b.is_stored(b.d, "a"));
  need(b.fs().rename(b.d, "a", b.d, "b", RenameMode::replace));
  CHECK_FALSE(b.is_stored(b.d, "b"));
  need(write_with(O_APPEND | O_DSYNC, b.fs(), made.open.handle, 0, "more"));
  CHECK(b.is_stored(b.d, "b"));
  b.fs().release(made.open.handle);
}

TEST_CASE("what nobody has stored a tick stores, and an unmount") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  b.fs().tick();
  CHECK(b.is_stored(b.d, "a"));
  make_file(b.fs(), b.e, "b");
  need(b.fs().unmount());
  CHECK(b.is_stored(b.e, "b"));
}

TEST_CASE("many changes of one directory are stored while others are answered") {
  Behind b;
  for (unsigned i = 0; i < 72; ++i) make_file(b.fs(), b.d, std::to_string(i));
  CHECK(b.is_stored(b.d, "0"));
  CHECK_FALSE(b.is_stored(b.d, "71"));  // it is likely to be changed still
}

TEST_CASE("another client's lookup, listing and change find what was answered") {
  Behind b;
  const auto file = make_file(b.fs(), b.d, "a");
  CHECK(ino_of(b.other(), b.d, "a") == file);
  make_file(b.fs(), b.e, "b");
  SECTION("a listing") { CHECK(names_in(b.other(), b.e) == std::vector<std::string>{"b"}); }
  SECTION("a lookup of a name that was removed") {
    need(b.fs().sync_directory(b.e));
    need(b.fs().unlink(b.e, "b"));
    CHECK_FALSE(ino_of(b.other(), b.e, "b"));
  }
  SECTION("a removal") { need(b.other().unlink(b.e, "b")); }
  SECTION("a file that is to be made anew") {
    const auto again = b.other().create({}, b.e, "b", 0644, O_RDWR | O_CREAT | O_EXCL);
    CHECK(error_of(again) == ErrorCode::exists);
  }
  CHECK(problems(b.volume.cluster()).empty());
}

TEST_CASE("so it is in a directory whose lease was taken for its changes, and in one that was only read before") {
  Behind b;
  const auto f = make_dir(b.other(), root_ino, "f");
  make_file(b.other(), f, "1");
  SECTION("changes") {
    for (const char* name : {"2", "3", "4", "5"}) make_file(b.fs(), f, name);
  }
  SECTION("lookups, and changes") {
    for (unsigned i = 0; i < 16; ++i) need(b.fs().lookup(f, "1"));
    for (const char* name : {"2", "3", "4", "5"}) make_file(b.fs(), f, name);
  }
  b.store().reset_record();
  const auto file = make_file(b.fs(), f, "6");
  CHECK_FALSE(b.is_stored(f, "6"));
  CHECK(ino_of(b.other(), f, "6") == file);
}

TEST_CASE("who looks into a directory that was only read by its holder asks for nothing") {
  Behind b;
  const auto f = make_dir(b.other(), root_ino, "f");
  make_file(b.other(), f, "a");
  for (unsigned i = 0; i < 16; ++i) need(b.fs().lookup(f, "a"));
  b.visitor.client->reset_record();
  CHECK(ino_of(b.other(), f, "a"));
  CHECK(b.visitor.client->counts().notifies == 0);
}

TEST_CASE("a directory is stored in the order of its changes, up to where its client died") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  make_file(b.fs(), b.d, "b");
  need(b.fs().sync_directory(b.d));
  need(b.fs().unlink(b.d, "a"));
  need(b.fs().rename(b.d, "b", b.d, "c", RenameMode::replace));
  b.store().crash();
  CHECK(names_in(b.other(), b.d) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a removal is stored after what was added before it elsewhere") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  need(b.fs().sync_directory(b.d));
  make_file(b.fs(), b.e, "copy of a");
  need(b.fs().unlink(b.d, "a"));
  b.store().reset_record();
  SECTION("by fsync") { need(b.fs().sync_directory(b.d)); }
  SECTION("by a tick") { b.fs().tick(); }
  SECTION("because another client asks") { CHECK_FALSE(ino_of(b.other(), b.d, "a")); }
  auto stored = b.store().trace();
  std::erase_if(stored, [](const std::string& step) { return !step.starts_with("store names"); });
  CHECK(stored == Trace{step_on("store names", b.e), step_on("store names", b.d)});
}

TEST_CASE("a removal that is done step by step comes after what was added before it elsewhere, too") {
  Behind b;
  const auto file = make_file(b.fs(), b.d, "a");
  need(b.fs().link(file, b.d, "b"));
  make_file(b.fs(), b.e, "copy of a");
  b.store().reset_record();
  need(b.fs().unlink(b.d, "a"));
  const auto trace = b.store().trace();
  const auto stored = std::ranges::find(trace, step_on("store names", b.e));
  REQUIRE(stored != trace.end());
  CHECK(std::find(stored, trace.end(), step_on("remove entry", b.d)) != trace.end());
}

TEST_CASE("nor does a file get another size before what was added elsewhere is stored") {
  Behind b;
  const auto file = make_file(b.fs(), b.d, "a");
  make_file(b.fs(), b.e, "copy of a");
  SetAttributes cut;
  cut.size_bytes = 0;
  need(b.fs().set_attributes({}, file, cut));
  CHECK(b.is_stored(b.e, "copy of a"));
}

TEST_CASE("a file that was moved is not found by its number once its removal was answered elsewhere") {
  Behind b;
  const auto file = make_file(b.fs(), b.e, "x");
  need(b.fs().rename(b.e, "x", b.d, "y", RenameMode::replace));
  need(b.fs().sync_directory(b.d));
  static_cast<void>(names_in(b.fs(), b.d));
  need(b.fs().unlink(b.d, "y"));
  CHECK(b.is_stored(b.d, "y"));
  CHECK(error_of(b.other().lookup(file, ".")) == ErrorCode::stale);
}

TEST_CASE("a file is found by its number before its name is stored") {
  Behind b;
  const auto file = make_file(b.fs(), b.d, "a");
  need(b.fs().lookup(file, "."));
}

namespace {

/// A directory that is held and known to be empty, and a name in it.
struct Held {
  FakeClock clock;
  HeldDirectories held{clock};
  const Ino p{70};
  const Token tenure{InstanceId{7}, 1};
  const txn::Name name{format::VolumeUuid{}, p, "a"};
  const format::EntryRecord record{Ino{5}, FileType::regular, {InstanceId{7}, 5}};
  const HeldDirectories::Known none;

  Held() {
    held.born(p, tenure, 10);
    held.may_write_behind(p, tenure);
  }
  bool add() {
    const std::vector<HeldDirectories::Change> names{{name, none, txn::Entry{encode(record), record}}};
    return held.change({p, tenure, names}, [] { return 1; });
  }
};

}  // namespace

TEST_CASE("no name is changed in memory while its directory is to be sealed, or a step is changing it") {
  Held h;
  h.held.pause(h.p);
  CHECK_FALSE(h.add());
  h.held.resume(h.p);
  h.held.hide({{&h.name}});
  CHECK_FALSE(h.add());
  h.held.show({{&h.name}});
  CHECK(h.add());
}

TEST_CASE("what a read shows of a name that was changed since it was sent is not kept") {
  Held h;
  auto& [clock, held, p, tenure, name, record, none] = h;
  const auto ticket = held.begin_read(p).value();
  REQUIRE(h.add());
  held.keep(ticket, name.key, std::nullopt, 12);
  const auto known = held.find({&name}, tenure);
  REQUIRE(known);
  CHECK(known->front());
  CHECK_FALSE(held.end_unless_logged(p));  // a collector that asks leaves it
  held.stored(p, tenure, {{name.key}}, 1, 13);
  held.keep(held.begin_read(p).value(), name.key, std::nullopt, 14);
  CHECK_FALSE(held.find({&name}, tenure)->front());
  CHECK(held.end_unless_logged(p));
}

TEST_CASE("what was answered is stored before the directory is changed step by step") {
  Behind b;
  const auto file = make_file(b.fs(), b.d, "a");
  b.store().reset_record();
  SECTION("another name") { need(b.fs().link(file, b.d, "b")); }
  SECTION("an attribute of its own") {
    need(b.fs().set_xattr(b.d, "user.a", "1", XattrMode::create_or_replace, SetgidBit::stays));
  }
  SECTION("a move") { need(b.fs().rename(b.d, "a", b.e, "a", RenameMode::replace)); }
  const auto trace = b.store().trace();
  CHECK(std::ranges::count(trace, step_on("store names", b.d)) == 1);
  CHECK(names_in(b.fs(), b.d).size() + names_in(b.fs(), b.e).size() >= 1);
  CHECK(problems(b.volume.cluster()).empty());
}

TEST_CASE("no name comes to be in a directory that is being removed") {
  Behind b;
  std::future<bool> made;
  b.store().set_hook(before("seal", [&] {
    made = std::async(std::launch::async, [&b] {
      return b.fs().make_node({}, b.e, "late", {FileType::regular, 0644, 0, {}}).has_value();
    });
  }));
  const bool is_removed = b.fs().rmdir(root_ino, "e").has_value();
  CHECK(made.get() != is_removed);
  CHECK(problems(b.volume.cluster()).empty());
}

TEST_CASE("a batch that fails is told to who waits for it, and sent again") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  b.store().set_hook(once_on("store names", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(b.fs().sync_directory(b.d)) == ErrorCode::no_space);
  CHECK(ino_of(b.fs(), b.d, "a"));
  need(b.fs().sync_directory(b.d));
}

TEST_CASE("who waits for additions elsewhere is told that these cannot be stored") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  need(b.fs().sync_directory(b.d));
  make_file(b.fs(), b.e, "b");
  need(b.fs().unlink(b.d, "a"));
  b.store().set_hook(once_on("store names", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(b.fs().sync_directory(b.d)) == ErrorCode::no_space);
  need(b.fs().sync_directory(b.d));
  CHECK(b.is_stored(b.e, "b"));
  CHECK_FALSE(b.is_stored(b.d, "a"));
}

TEST_CASE("a batch that is run twice, or whose answer is lost, leaves what it should") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  const auto kind =
      GENERATE(Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  b.store().set_hook(once_on("store names", {kind}));
  need(b.fs().sync_directory(b.d));
  need(b.fs().unlink(b.d, "a"));
  CHECK_FALSE(ino_of(b.fs(), b.d, "a"));
  need(b.fs().sync_directory(b.d));
  CHECK_FALSE(b.is_stored(b.d, "a"));
  CHECK(names_in(b.other(), b.d).empty());
}

TEST_CASE("a change of a name whose last change is on its way is kept in its order") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  b.happens_to_batches_of(b.d, {Fault::Kind::hold});
  b.fs().tick();
  REQUIRE(b.store().wait_for_held(1));
  need(b.fs().rename(b.d, "a", b.d, "b", RenameMode::replace));
  const auto second = make_file(b.fs(), b.d, "a");
  b.store().set_hook(nullptr);
  b.store().release_all();
  CHECK(ino_of(b.fs(), b.d, "a") == second);
  need(b.fs().sync_directory(b.d));
  CHECK(names_in(b.other(), b.d) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a lease that is lost takes with it what was not stored, and fsync says so") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  b.volume.cluster().with_objects([&](scripted::Objects& objects) {
    objects.metadata().at(format::inode_object(b.d)).xattrs.erase(format::xattr::lease);
  });
  CHECK(error_of(b.fs().sync_directory(b.d)) == ErrorCode::io);
  CHECK_FALSE(ino_of(b.fs(), b.d, "a"));
  need(b.fs().sync_directory(b.d));
}

TEST_CASE("fsync of a file whose name is lost says so, while it waits and afterwards") {
  Behind b;
  const auto file = need(b.fs().create({}, b.d, "a", 0644, O_RDWR | O_CREAT));
  b.volume.cluster().with_objects([&](scripted::Objects& objects) {
    objects.metadata().at(format::inode_object(b.d)).xattrs.erase(format::xattr::lease);
  });
  SECTION("while it waits") {}
  SECTION("afterwards") { b.fs().tick(); }
  CHECK(error_of(b.fs().fsync(file.open.handle, false)) == ErrorCode::io);
  b.fs().release(file.open.handle);
}

TEST_CASE("nor does an open that cuts a file come before what was added elsewhere") {
  Behind b;
  const auto file = make_file(b.fs(), b.d, "a");
  SECTION("by its number") {
    make_file(b.fs(), b.e, "copy of a");
    b.fs().release(need(b.fs().open({}, file, O_RDWR | O_TRUNC)).handle);
  }
  SECTION("by its name") {
    make_file(b.fs(), b.e, "copy of a");
    b.fs().release(need(b.fs().create({}, b.d, "a", 0644, O_RDWR | O_CREAT | O_TRUNC)).open.handle);
  }
  CHECK(b.is_stored(b.e, "copy of a"));
}

TEST_CASE("a new file that is opened after it was removed or replaced, and before that is stored, is all there") {
  auto options = behind();
  options.dirty_limit_bytes = 1 << 20;
  options.idle_leases = 100;
  Behind b(options);
  const auto write_file = [&b](const std::string& name, const std::string& text) {
    const auto file = need(b.fs().create({}, b.d, name, 0644, O_RDWR));
    need(write_at(b.fs(), file.open.handle, 0, text));
    b.fs().release(file.open.handle);
    return file.entry.attributes.ino;
  };
  const auto old = write_file("f", "the old one");
  if (GENERATE(false, true)) {
    need(b.fs().unlink(b.d, "f"));
  } else {
    write_file("f.tmp", "the new one");
    need(b.fs().rename(b.d, "f.tmp", b.d, "f", RenameMode::replace));
  }
  SECTION("before") {
    const auto handle = need(b.fs().open({}, old, O_RDONLY)).handle;
    CHECK(need(read_at(b.fs(), handle, 0, 100)) == "the old one");
    need(b.fs().sync_directory(b.d));
    CHECK(need(read_at(b.fs(), handle, 0, 100)) == "the old one");
    b.fs().release(handle);
  }
  SECTION("afterwards it is gone") {
    need(b.fs().sync_directory(b.d));
    CHECK(error_of(b.fs().open({}, old, O_RDONLY)) == ErrorCode::stale);
    CHECK_FALSE(inode_object_of(b.volume.cluster(), old));
  }
  need(b.holder->unmount());
}

TEST_CASE("a file that is opened while its last name is taken away keeps its link count until the store knows") {
  Behind b;
  const auto file = make_file(b.fs(), b.d, "a");
  need(b.fs().sync_directory(b.d));
  HandleId handle{};
  b.store().set_hook(before("log queue items", [&] { handle = need(b.fs().open({}, file, O_RDWR)).handle; }));
  need(b.fs().unlink(b.d, "a"));
  CHECK(b.store().counts().applies <= 2);  // of which none is on the inode
  b.fs().release(handle);
}

TEST_CASE("a removal that waits for an addition that comes in meanwhile is stored without a tick") {
  Behind b;
  make_file(b.fs(), b.d, "old");
  need(b.fs().sync_directory(b.d));
  make_file(b.fs(), b.e, "1");
  make_file(b.fs(), b.d, "2");
  b.happens_to_batches_of(b.e, {Fault::Kind::hold});
  auto first = std::async(std::launch::async, [&b] { return b.fs().sync_directory(b.e); });
  REQUIRE(b.store().wait_for_held(1));
  make_file(b.fs(), b.e, "3");
  need(b.fs().unlink(b.d, "old"));
  auto second = std::async(std::launch::async, [&b] { return b.fs().sync_directory(b.d); });
  b.store().set_hook(nullptr);
  b.store().release_all();
  need(first.get());
  need(second.get());
  CHECK(b.is_stored(b.e, "3"));
  CHECK_FALSE(b.is_stored(b.d, "old"));
}

TEST_CASE("a directory that cannot be stored fails no other, and no unmount loses bytes for it") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  const auto file = make_file(b.fs(), b.e, "b");
  b.happens_to_batches_of(b.d, {Fault::Kind::fail, ErrorCode::no_space});
  need(b.fs().sync_directory(b.e));
  b.fs().tick();
  const auto open = need(b.fs().open({}, file, O_RDWR));
  need(write_at(b.fs(), open.handle, 0, "bytes"));
  b.fs().release(open.handle);
  CHECK(error_of(b.fs().unmount()) == ErrorCode::no_space);
  CHECK(need(b.other().lookup(b.e, "b")).attributes.size_bytes == 5);
}

TEST_CASE("where a name is lost, and not for want of room, what was removed after it in another directory comes back") {
  Behind b;
  const auto original = make_file(b.fs(), b.e, "original");
  need(b.fs().sync_directory(b.e));
  b.happens_to_batches_of(b.d, {Fault::Kind::fail, ErrorCode::io});
  make_file(b.fs(), b.d, "copy");
  make_file(b.fs(), b.e, "before");
  need(b.fs().unlink(b.e, "original"));
  make_file(b.fs(), b.e, "after");
  b.seconds_pass_while([&b] { return ino_of(b.fs(), b.d, "copy").has_value(); });
  CHECK_FALSE(ino_of(b.fs(), b.d, "copy"));
  CHECK(ino_of(b.fs(), b.e, "original") == original);
  CHECK(ino_of(b.other(), b.e, "before"));
  CHECK_FALSE(ino_of(b.fs(), b.e, "after"));
  CHECK(error_of(b.fs().sync_directory(b.d)) == ErrorCode::io);
  CHECK(error_of(b.fs().sync_directory(b.e)) == ErrorCode::io);
  CHECK(need(b.other().get_attributes(original)).attributes.nlink == 1);
}

TEST_CASE("an unmount tries names again that the store refuses for a while") {
  Behind b;
  make_file(b.fs(), b.e, "old");
  need(b.fs().sync_directory(b.e));
  make_file(b.fs(), b.d, "a");
  need(b.fs().unlink(b.e, "old"));
  b.store().set_hook(
      [object = format::inode_object(b.d), tries = std::make_shared<std::atomic<int>>(0)](const auto& info) {
        const bool is_refused = info.step == "store names" && info.object == object && ++*tries <= 3;
        return is_refused ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
      });
  need(b.fs().unmount());
  CHECK(b.is_stored(b.d, "a"));
  CHECK_FALSE(b.is_stored(b.e, "old"));
}

TEST_CASE("an unmount ends though the store refuses names for good, and tells that they are lost") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  make_file(b.fs(), b.e, "b");
  b.happens_to_batches_of(b.d, {Fault::Kind::fail, ErrorCode::io});
  CHECK(error_of(b.fs().unmount()) == ErrorCode::io);
  CHECK(b.is_stored(b.e, "b"));
}

TEST_CASE("what finds no room for a minute is lost, and what removes names elsewhere is stored: that makes room") {
  Behind b;
  make_file(b.fs(), b.e, "large");
  need(b.fs().sync_directory(b.e));
  b.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  make_file(b.fs(), b.d, "a");
  need(b.fs().unlink(b.e, "large"));
  b.seconds_pass(60);
  CHECK(ino_of(b.fs(), b.d, "a"));
  CHECK(b.is_stored(b.e, "large"));
  b.seconds_pass_while([&b] { return b.is_stored(b.e, "large"); });
  CHECK_FALSE(b.is_stored(b.e, "large"));
  CHECK_FALSE(ino_of(b.fs(), b.d, "a"));
  CHECK(error_of(b.fs().sync_directory(b.d)) == ErrorCode::io);
  need(b.fs().sync_directory(b.e));
}

TEST_CASE("a removal waits for a name elsewhere that finds no room, where many in its directory wait for that") {
  Behind b;
  constexpr unsigned more_than_the_log_takes = 2049;
  for (unsigned i = 0; i < more_than_the_log_takes; ++i) make_file(b.fs(), b.e, std::to_string(i));
  need(b.fs().sync_directory(b.e));
  b.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  make_file(b.fs(), b.d, "a");
  for (unsigned i = 0; i < more_than_the_log_takes; ++i) need(b.fs().unlink(b.e, std::to_string(i)));
  CHECK_FALSE(b.is_stored(b.e, "0"));
  CHECK_FALSE(ino_of(b.fs(), b.d, "a"));
  need(b.fs().sync_directory(b.e));
}

TEST_CASE("an unmount tells that a name finds no room, and keeps what was removed after it elsewhere") {
  Behind b;
  make_file(b.fs(), b.e, "large");
  make_file(b.fs(), b.e, "old");
  need(b.fs().sync_directory(b.e));
  need(b.fs().unlink(b.e, "old"));
  const auto refused = make_file(b.fs(), b.d, "a");
  const auto below = make_file(b.fs(), make_dir(b.fs(), b.d, "sub"), "below");
  need(b.fs().unlink(b.e, "large"));
  b.store().set_hook([object = format::inode_object(refused)](const StepInfo& info) {
    const bool is_refused = info.step == "create inode" && info.object == object;
    return is_refused ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  CHECK(error_of(b.fs().unmount()) == ErrorCode::no_space);
  CHECK(b.is_stored(b.e, "large"));
  CHECK_FALSE(b.is_stored(b.e, "old"));
  const auto trace = b.store().trace();
  CHECK(std::ranges::any_of(trace, [](const auto& line) { return line.starts_with("end instance"); }));
  CHECK(names_in(b.other(), b.d).empty());
  for (unsigned pass = 0; pass < 3; ++pass) collect(b.volume.cluster(), b.volume.clock());
  CHECK_FALSE(inode_object_of(b.volume.cluster(), below));
  CHECK(problems(b.volume.cluster()).empty());
}

TEST_CASE("so it does where another client asks for the copy while the unmount waits for an object") {
  Behind b;
  const Ino originals = make_dir(b.fs(), b.d, "originals");
  make_file(b.fs(), originals, "large");
  for (const Ino where : {b.d, originals}) need(b.fs().sync_directory(where));
  const auto refused = make_file(b.fs(), b.e, "a");
  need(b.fs().unlink(originals, "large"));
  make_file(b.fs(), b.d, "another");
  std::atomic<unsigned> refusals = 0;
  b.store().set_hook([&](const StepInfo& info) {
    if (info.object == format::inode_object(b.d) && info.mutates()) return Fault{Fault::Kind::hold};
    if (info.step != "create inode" || info.object != format::inode_object(refused)) return Fault{};
    ++refusals;
    return Fault{Fault::Kind::fail, ErrorCode::no_space};
  });
  auto unmounted = std::async(std::launch::async, [&b] { return error_of(b.fs().unmount()); });
  for (unsigned i = 0; i < 10000 && refusals == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(b.store().wait_for_held(1));
  CHECK(names_in(b.other(), b.e).empty());
  b.store().set_hook(nullptr);
  b.store().release_all();
  CHECK(unmounted.get() == ErrorCode::io);
  CHECK(b.is_stored(originals, "large"));
}

TEST_CASE("what was answered in a directory before a name that finds no room is stored") {
  Behind b;
  make_file(b.fs(), b.d, "old");
  need(b.fs().sync_directory(b.d));
  need(b.fs().unlink(b.d, "old"));
  make_file(b.fs(), b.d, "before");
  make_dir(b.fs(), b.d, "sub");
  const auto refused = make_file(b.fs(), b.d, "refused");
  make_dir(b.fs(), b.d, "after");
  b.store().set_hook([object = format::inode_object(refused)](const StepInfo& info) {
    const bool is_refused = info.step == "create inode" && info.object == object;
    return is_refused ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  SECTION("also where somebody waits for all of it") {
    CHECK(error_of(b.fs().sync_directory(b.d)) == ErrorCode::no_space);
    for (const auto* const name : {"before", "sub"}) CHECK(b.is_stored(b.d, name));
    for (const auto* const name : {"old", "refused", "after"}) CHECK_FALSE(b.is_stored(b.d, name));
    CHECK(ino_of(b.fs(), b.d, "refused") == refused);
    b.store().set_hook(nullptr);
    need(b.fs().sync_directory(b.d));
    CHECK(names_in(b.other(), b.d) == std::vector<std::string>{"after", "before", "refused", "sub"});
  }
  SECTION("also where another client asks for the directory at once") {
    CHECK(names_in(b.other(), b.d) == std::vector<std::string>{"before", "sub"});
  }
  b.store().set_hook(nullptr);
  CHECK(problems(b.volume.cluster()).empty());
}

TEST_CASE("another client waits for no room where a directory in the one that it asks for has names that find none") {
  Behind b;
  const Ino s = make_dir(b.fs(), b.d, "s");
  need(b.fs().sync_directory(b.d));
  b.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  SetAttributes changes;
  changes.mtime = TimeSpec{7, 0};
  const bool is_changed_first = GENERATE(true, false);
  if (is_changed_first) need(b.fs().set_attributes({}, s, changes));
  make_file(b.fs(), s, "x");
  if (!is_changed_first) need(b.fs().set_attributes({}, s, changes));
  const auto began = b.volume.clock().elapsed();
  CHECK(names_in(b.other(), b.d) == std::vector<std::string>{"s"});
  CHECK(b.volume.clock().elapsed() - began < seconds(30));
  CHECK(ino_of(b.fs(), s, "x").has_value() == is_changed_first);
}

TEST_CASE("a file is found by its number though another name in its directory finds no room") {
  Behind b;
  const auto file = make_file(b.fs(), b.d, "file");
  const auto removed = make_file(b.fs(), b.d, "removed");
  need(b.fs().sync_directory(b.d));
  const auto refused = make_file(b.fs(), b.d, "refused");
  b.store().set_hook([object = format::inode_object(refused)](const StepInfo& info) {
    const bool is_refused = info.step == "create inode" && info.object == object;
    return is_refused ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  const auto behind_it = make_file(b.fs(), b.d, "behind it");
  need(b.fs().unlink(b.d, "removed"));
  for (const Ino ino : {file, behind_it}) CHECK(need(b.fs().lookup(ino, ".")).attributes.ino == ino);
  CHECK(error_of(b.fs().lookup(removed, ".")) == ErrorCode::no_space);
  need(b.fs().rename(b.d, "file", b.d, "renamed", RenameMode::replace));
  CHECK(need(b.fs().lookup(file, ".")).attributes.ino == file);
}

TEST_CASE("changes of a directory go on though others have many that hang, or cannot be stored") {
  const auto outcome = GENERATE(Fault::Kind::fail, Fault::Kind::hold);
  Behind b;
  b.store().set_hook([outcome, object = format::inode_object(b.e)](const StepInfo& info) {
    return info.step == "store names" && info.object != object ? Fault{outcome, ErrorCode::io} : Fault{};
  });
  for (int i = 0; i < 4090; ++i) make_file(b.fs(), i % 2 == 0 ? b.d : root_ino, std::to_string(i));
  for (int i = 0; i < 3000; ++i) make_file(b.fs(), b.e, std::to_string(i));
  CHECK(b.is_stored(b.e, "2000"));
  b.store().set_hook({});
  b.store().release_all();
}

TEST_CASE("a new file in a directory with a default ACL waits for no name that is not stored") {
  Behind b;
  const auto acl = encode(acl_of("u::rw-,u:7:r--,g::r--,m::rw-,o::---"));
  need(b.fs().set_xattr(b.d, format::attribute::default_acl, acl, XattrMode::create_or_replace, SetgidBit::stays));
  b.store().set_hook(always_on("create inode", {Fault::Kind::hold}));
  make_file(b.fs(), b.d, "1");
  const auto second = make_file(b.fs(), b.d, "2");
  CHECK_FALSE(b.is_stored(b.d, "1"));
  b.store().set_hook(nullptr);
  b.store().release_all();
  need(b.fs().sync_directory(b.d));
  CHECK(need(b.other().get_xattr(second, format::attribute::access_acl)) != Bytes());
}

TEST_CASE("what another client looks for is stored, and not lost, where it only waits for what finds no room") {
  Behind b;
  make_file(b.fs(), b.e, "old");
  need(b.fs().sync_directory(b.e));
  b.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  make_file(b.fs(), b.d, "new");
  need(b.fs().unlink(b.e, "old"));
  CHECK_FALSE(ino_of(b.other(), b.e, "old"));
  CHECK_FALSE(b.is_stored(b.e, "old"));
}

TEST_CASE("what was answered stays the answer while another client waits for a directory that only waits for room") {
  Behind b;
  make_file(b.fs(), b.e, "old");
  make_file(b.fs(), b.e, "stays");
  need(b.fs().sync_directory(b.e));
  b.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  make_file(b.fs(), b.d, "new");
  need(b.fs().unlink(b.e, "old"));
  auto looks = std::async(std::launch::async, [&b] { return ino_of(b.other(), b.e, "old"); });
  while (looks.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    CHECK_FALSE(ino_of(b.fs(), b.e, "old"));
    CHECK(names_in(b.fs(), b.e) == std::vector<std::string>{"stays"});
  }
  CHECK_FALSE(looks.get());
}

TEST_CASE("once a new file found no room, the next one waits for the store, until one has found some") {
  Behind b;
  const Ino others = make_dir(b.other(), root_ino, "others");
  b.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  const auto create = [&b](Ino where, const char* name) {
    return error_of(b.fs().create({}, where, name, 0644, O_RDWR));
  };
  CHECK(create(others, "refused") == ErrorCode::no_space);
  CHECK(create(b.d, "as well") == ErrorCode::no_space);
  b.store().set_hook(nullptr);
  make_file(b.fs(), b.d, "waits");
  CHECK(b.is_stored(b.d, "waits"));
  make_file(b.fs(), b.d, "behind");
  CHECK_FALSE(b.is_stored(b.d, "behind"));
}

TEST_CASE(
    "the log has one line when what is made finds no room any more, and one when something has found some again") {
  Behind b;
  const Ino others = make_dir(b.other(), root_ino, "others");
  const LogLines lines;
  b.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  for (const char* const name : {"a", "b", "c"}) {
    CHECK(error_of(b.fs().create({}, others, name, 0644, O_RDWR)) == ErrorCode::no_space);
  }
  REQUIRE(lines.with("the store has").size() == 1);
  CHECK(lines.with("the store has").front().starts_with("the store has no room for new names: no space left: "));
  b.store().set_hook(nullptr);
  make_file(b.fs(), others, "a");
  make_file(b.fs(), others, "b");
  REQUIRE(lines.with("the store has").size() == 2);
  CHECK(lines.with("the store has").back() == "the store has room for new names again");
}

TEST_CASE("a close tells that the inode of its file finds no room") {
  auto options = behind();
  options.dirty_limit_bytes = 1 << 20;
  options.idle_leases = 10;
  Behind b(options);
  const auto made = need(b.fs().create({}, b.d, "a", 0644, O_RDWR | O_CREAT));
  b.store().set_hook(always_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(b.fs().sync_directory(b.d)) == ErrorCode::no_space);
  CHECK(error_of(b.fs().flush(made.open.handle)) == ErrorCode::no_space);
  b.store().set_hook(nullptr);
  need(b.fs().flush(made.open.handle));
  b.fs().release(made.open.handle);
}

TEST_CASE("a file is found by its number though names in a directory that has none of it cannot be stored") {
  Behind b;
  const auto file = make_file(b.fs(), b.e, "b");
  need(b.fs().sync_directory(b.e));
  b.happens_to_batches_of(b.d, {Fault::Kind::fail, ErrorCode::io});
  make_file(b.fs(), b.e, "c");
  make_file(b.fs(), b.d, "a");
  CHECK(need(b.fs().lookup(file, ".")).attributes.ino == file);
  CHECK(b.is_stored(b.e, "c"));
  b.store().set_hook(nullptr);
  need(b.fs().sync_directory(b.d));
  b.happens_to_batches_of(b.d, {Fault::Kind::fail, ErrorCode::no_space});
  need(b.fs().unlink(b.e, "b"));
  make_file(b.fs(), b.d, "c");
  CHECK(error_of(b.fs().lookup(file, ".")) == ErrorCode::stale);
}

TEST_CASE("what the store refuses for a moment is not lost, however often it is tried in that moment") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  b.happens_to_batches_of(b.d, {Fault::Kind::fail, ErrorCode::io});
  for (unsigned i = 0; i < 40; ++i) CHECK(error_of(b.fs().sync_directory(b.d)) == ErrorCode::io);
  b.store().set_hook(nullptr);
  need(b.fs().sync_directory(b.d));
  CHECK(b.is_stored(b.d, "a"));
}

TEST_CASE("a removal that waits for a copy is not done where the copy is lost, and that is told once") {
  Behind b;
  const auto a = make_file(b.fs(), b.e, "a");
  need(b.fs().sync_directory(b.e));
  const auto open = need(b.fs().open({}, a, O_RDONLY));  // so its removal is not answered before it is stored
  make_file(b.fs(), b.d, "copy of a");
  b.happens_to_batches_of(b.d, {Fault::Kind::fail, ErrorCode::io});
  b.seconds_pass(10);
  b.volume.clock().advance(seconds(1));
  CHECK(error_of(b.fs().unlink(b.e, "a")) == ErrorCode::io);
  CHECK(ino_of(b.fs(), b.e, "a") == a);
  CHECK_FALSE(ino_of(b.fs(), b.d, "copy of a"));
  need(b.fs().unlink(b.e, "a"));
  b.fs().release(open.handle);
}

TEST_CASE("what was answered in one tenure is not stored in the next") {
  Behind b;
  make_file(b.fs(), b.d, "old");
  need(b.fs().sync_directory(b.d));
  make_file(b.fs(), b.d, "a");
  b.happens_to_batches_of(b.d, {Fault::Kind::fail, ErrorCode::no_space});
  b.loses_its_lease(b.d);
  b.volume.cluster().set_away([](const std::string& object) { return object == format::super_object; });
  b.volume.clock().advance(seconds(6));
  CHECK_FALSE(ino_of(b.fs(), b.d, "x"));  // it is read
  b.volume.cluster().set_away(nullptr);
  static_cast<void>(names_in(b.fs(), b.d));  // and the next removal takes the lease
  CHECK(error_of(b.fs().unlink(b.d, "old")) == ErrorCode::no_space);
  b.store().set_hook(nullptr);
  CHECK(error_of(b.fs().sync_directory(b.d)) == ErrorCode::io);
  need(b.fs().unlink(b.d, "old"));
  need(b.fs().sync_directory(b.d));
  CHECK(names_in(b.other(), b.d).empty());
}

TEST_CASE("that a name was lost is told once, also where the file has another one since") {
  Behind b;
  const auto file = need(b.fs().create({}, b.d, "a", 0644, O_RDWR | O_CREAT));
  b.happens_to_batches_of(b.d, {Fault::Kind::fail, ErrorCode::io});
  b.seconds_pass(12);
  b.store().set_hook(nullptr);
  const Ino ino = file.entry.attributes.ino;
  need(b.fs().link(ino, b.e, "b"));
  need(b.fs().rename(b.e, "b", b.e, "c", RenameMode::replace));
  CHECK(error_of(b.fs().fsync(file.open.handle, false)) == ErrorCode::io);
  need(b.fs().fsync(file.open.handle, false));
  b.fs().release(file.open.handle);
}

TEST_CASE("what comes while memory forgets what is lost is not logged") {
  InstanceVolume volume;
  const auto running = volume.start();
  const Token tenure = running.instance->next_token();
  NameLog* log = nullptr;
  std::optional<std::uint64_t> added{0};
  HeldDirectories held(volume.clock, [&](Ino directory) { added = log->add(directory, tenure, {{}, {}, {}, {}}); });
  NameLog names(*running.instance, held);
  log = &names;
  names.finish_files_with([](std::span<const Ino>, NameLog::Done done) { done(); });
  REQUIRE(held.begin(root_ino, tenure));
  REQUIRE(held.take_effect(root_ino, tenure, 1));
  const txn::Name name({}, root_ino, "d");
  const format::EntryRecord record{Ino{7}, FileType::directory, tenure};
  held.changed(name, txn::Entry{encode(record), record}, 2);
  REQUIRE(held.give(name, Ino{7}, tenure));
  const auto record_of = [] {
    NameLog::Record logged;
    logged.change.object = format::inode_object(root_ino);
    return logged;
  };
  REQUIRE(names.add(root_ino, tenure, record_of()));
  need(names.store(root_ino));  // it is lost: there is no such lease
  CHECK_FALSE(added);
  CHECK(names.add(root_ino, tenure, record_of()));
  need(names.store(root_ino));
}

TEST_CASE("what the store refuses again and again is lost, and its directory is read anew") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  b.happens_to_batches_of(b.d, {Fault::Kind::fail, ErrorCode::io});
  b.seconds_pass(12);
  b.store().set_hook(nullptr);
  CHECK_FALSE(ino_of(b.fs(), b.d, "a"));
  CHECK(error_of(b.fs().sync_directory(b.d)) == ErrorCode::io);
  make_file(b.fs(), b.d, "b");
  need(b.fs().sync_directory(b.d));
  CHECK(b.is_stored(b.d, "b"));
}

TEST_CASE("the numbers of a change are not retired before it is stored") {
  Behind b;
  const auto lowest_running = [&] {
    const auto poll = need(poll_liveness(*b.volume.cluster().new_client(), {}));
    const auto is_holder = [&](const Member& member) { return member.record.identity == b.store().identity(); };
    const auto holder = std::ranges::find_if(poll.members, is_holder);
    REQUIRE(holder != poll.members.end());
    REQUIRE(holder->standing == Member::Standing::answered);
    return holder->lowest_running;
  };
  const auto rename = [&] { need(b.fs().rename(b.d, "a", b.d, "b", RenameMode::replace)); };
  const auto unlink = [&] { need(b.fs().unlink(b.d, "b")); };
  make_file(b.fs(), b.d, "a");
  for (const std::function<void()>& change : {std::function<void()>(rename), std::function<void()>(unlink)}) {
    need(b.fs().sync_directory(b.d));
    const auto before = lowest_running();
    change();
    CHECK(lowest_running() == before);
    need(b.fs().sync_directory(b.d));
    CHECK(lowest_running() > before);
  }
}

TEST_CASE("a collector leaves alone a file whose name is not stored yet, and removes what was unlinked once that is") {
  Behind b;
  const auto file = make_file(b.fs(), b.d, "a");
  const auto gone = make_file(b.fs(), b.d, "b");
  need(b.fs().unlink(b.d, "b"));
  need(b.fs().lookup(file, "."));  // its inode is stored for it
  collect(b.volume.cluster(), b.volume.clock());
  CHECK(inode_object_of(b.volume.cluster(), file));
  need(b.fs().sync_directory(b.d));
  for (unsigned pass = 0; pass < 3; ++pass) collect(b.volume.cluster(), b.volume.clock());
  CHECK(ino_of(b.other(), b.d, "a") == file);
  CHECK_FALSE(inode_object_of(b.volume.cluster(), gone));
}

TEST_CASE("a file that is open, or has another name, loses a name step by step") {
  Behind b;
  const auto open = need(b.fs().create({}, b.d, "a", 0644, O_RDWR | O_CREAT));
  need(b.fs().unlink(b.d, "a"));
  CHECK(need(b.fs().get_attributes(open.entry.attributes.ino)).attributes.nlink == 0);
  b.fs().release(open.open.handle);
  const auto file = make_file(b.fs(), b.d, "b");
  need(b.fs().link(file, b.e, "b"));
  need(b.fs().unlink(b.d, "b"));
  CHECK(need(b.fs().lookup(b.e, "b")).attributes.nlink == 1);
}

namespace {

enum class Said { nothing, done, busy };
Said answer_of(InstanceId whom, ScriptedClient& asker, const format::Question& question) {
  const auto heard = need(asker.notify(format::session_object(whom), encode(question), seconds(30)));
  if (heard.answers.empty()) return Said::nothing;
  const auto answer = need(format::decode<format::Answer>(heard.answers.front()));
  return answer.kind == format::Answer::Kind::done ? Said::done : Said::busy;
}

InstanceId holder_of(ScriptedCluster& cluster, Ino directory) {
  const auto lease = inode_object_of(cluster, directory)->xattrs.at(format::xattr::lease);
  return need(format::decode<format::DirectoryLeaseRecord>(lease)).token.instance;
}

/// A mount that waits at its end for another client's step on a file. A third one looks on.
struct EndsWaiting : Behind {
  Mount third = volume.mount();
  OpenFile written, leased;  // the third one's is the second, and the mount holds the lease of its locks
  InstanceId instance;
  std::future<Result<>> unmounted;

  EndsWaiting() {
    make_file(fs(), d, "a");
    instance = holder_of(volume.cluster(), d);
    written = create_file(other(), "written");
    const auto locked = open_again(fs(), written.ino);
    leased = create_file(*third.file_system, "leased");
    const auto locked_before = open_again(fs(), leased.ino);
    need(set_lock(fs(), exclusive(locked_before, 1)));
    need(unlock(fs(), exclusive(locked_before, 1)));
    fs().release(locked_before);
    for (unsigned turn = 0; turn < 2; ++turn) {
      need(set_lock(other(), exclusive(written.handle, 1)));
      need(unlock(other(), exclusive(written.handle, 1)));
      need(set_lock(fs(), exclusive(locked, 1)));
      need(unlock(fs(), exclusive(locked, 1)));
    }
    need(set_lock(other(), exclusive(written.handle, 1)));
    need(write_at(other(), written.handle, 0, "x"));
    need(unlock(other(), exclusive(written.handle, 1)));
    hold_steps_on(*visitor.client, written.ino);
    // Once the lock is in the store, what the visitor has written is read.
    auto lock = begin_lock(fs(), exclusive(locked, 1));
    REQUIRE(visitor.client->wait_for_held(1));
    fs().interrupt_all_locks();
    CHECK_FALSE(lock.get().has_value());

    unmounted = std::async(std::launch::async, [this] { return fs().unmount(); });
    wait_until_busy({format::Question::Kind::file_changed, written.ino});
  }
  void stop_waiting() {
    visitor.client->set_hook(nullptr);
    visitor.client->release_all();
  }
  static void hold_steps_on(ScriptedClient& client, Ino ino) {
    client.set_hook([object = format::inode_object(ino)](const StepInfo& info) {
      return info.kind == StepKind::apply && info.object == object ? Fault{Fault::Kind::hold} : Fault{};
    });
  }
  /// What the mount says.
  Said answer_to(const format::Question& question) { return answer_of(instance, *third.client, question); }
  /// It says so to all of that kind from then on.
  void wait_until_busy(const format::Question& question) {
    const auto give_up = std::chrono::steady_clock::now() + seconds(60);
    auto said = answer_to(question);
    while (said != Said::busy && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::yield();
      said = answer_to(question);
    }
    CHECK(said == Said::busy);
  }
};

}  // namespace

TEST_CASE("a mount that waits at its end for another client's file gives away its directories and locks meanwhile") {
  EndsWaiting b;
  make_file(*b.third.file_system, b.d, "b");
  auto granted = begin_lock(*b.third.file_system, waiting(exclusive(b.leased.handle, 1)));
  CHECK(granted.wait_for(seconds(60)) == std::future_status::ready);
  CHECK(b.third.client->counts().fences == 0);
  CHECK(names_in(*b.third.file_system, b.d) == std::vector<std::string>{"a", "b"});

  b.stop_waiting();
  need(b.unmounted.get());
  need(granted.get());
}

TEST_CASE("a mount that waits at its very end for what it was asked for says busy to all") {
  using Kind = format::Question::Kind;
  EndsWaiting b;
  b.hold_steps_on(b.store(), b.leased.ino);
  format::Question share{Kind::share_locks, b.leased.ino};
  share.asker = InstanceId{1};
  CHECK(b.answer_to(share) == Said::busy);
  REQUIRE(b.store().wait_for_held(1));
  b.volume.clock().patience = 40;  // what is done in time is not told busy
  b.stop_waiting();
  b.wait_until_busy({Kind::release_directory, b.d});
  for (const auto kind : {Kind::release_directory, Kind::release_lease, Kind::store_attributes}) {
    CHECK(b.answer_to({kind, b.d}) == Said::busy);
  }
  CHECK(b.answer_to(share) == Said::busy);
  CHECK(b.unmounted.wait_for(seconds(0)) == std::future_status::timeout);

  b.store().set_hook(nullptr);
  b.store().release_all();
  need(b.unmounted.get());
}

TEST_CASE("a mount whose last step on a directory is not answered says busy") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  const auto instance = holder_of(b.volume.cluster(), b.d);
  b.store().set_hook(always_on("remove step number", {Fault::Kind::hold}));
  auto unmounted = std::async(std::launch::async, [&b] { return b.fs().unmount(); });
  CHECK(b.store().wait_for_held(1));
  CHECK(answer_of(instance, *b.visitor.client, {format::Question::Kind::release_directory, b.d}) == Said::busy);
  b.store().set_hook(nullptr);
  b.store().release_all();
  need(unmounted.get());
}

TEST_CASE("a mount that could not end says nothing to who wants what it holds") {
  Behind b;
  make_file(b.fs(), b.d, "a");
  const auto instance = holder_of(b.volume.cluster(), b.d);
  b.happens_to_batches_of(b.d, {Fault::Kind::fail, ErrorCode::no_space});
  CHECK(error_of(b.fs().unmount()) == ErrorCode::no_space);
  CHECK(answer_of(instance, *b.visitor.client, {format::Question::Kind::release_directory, b.d}) == Said::nothing);
}

TEST_CASE("the directory's times tell of what was answered") {
  Behind b;
  const auto before = need(b.fs().get_attributes(b.d)).attributes.mtime;
  b.volume.clock().advance(seconds(3));
  make_file(b.fs(), b.d, "a");
  CHECK(before < need(b.fs().get_attributes(b.d)).attributes.mtime);
  CHECK(before < need(b.fs().lookup(root_ino, "d")).attributes.mtime);
}

TEST_CASE("a volume without the feature has its names stored before the answer") {
  TestVolume volume;
  volume.cluster().with_objects([](scripted::Objects& objects) {
    auto& raw = objects.metadata().at(format::super_object).xattrs.at(format::xattr::super);
    auto super = need(format::decode<format::SuperRecord>(raw));
    super.incompat &= ~format::feature::names_behind;
    raw = encode(super);
  });
  auto holder = volume.mount(behind());
  const auto d = make_dir(*holder.file_system, root_ino, "d");
  holder.client->reset_record();
  const auto file = make_file(*holder.file_system, d, "a");
  CHECK(holder.client->trace() == Trace{step_on("create inode", file), step_on("insert entry", d)});
}
