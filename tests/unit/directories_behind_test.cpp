// SPDX-License-Identifier: LGPL-2.1-or-later
// Directories that are made, changed and removed before the store has it: what that costs, in what order it is stored,
// and what others see of it.
#include <fcntl.h>

#include <thread>

#include "fs/held_directories.h"
#include "instance/liveness_poll.h"
#include "support/acls.h"
#include "support/catch.h"
#include "support/collecting.h"
#include "support/fake_clock.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"
#include "survey/inode_facts.h"

using namespace lccfs;
using namespace lccfs::test;
using std::chrono::seconds;

namespace {

using Kind = format::StateRecord::Kind;

FileSystemOptions directories_behind() {
  FileSystemOptions options;
  options.lease_after_changes = 4;
  options.names_behind = true;
  return options;
}

/// One that writes names behind, in a directory of its own, and another client.
struct Tree {
  TestVolume volume;
  Mount visitor = volume.mount();
  Mount holder = volume.mount(directories_behind());
  Ino d = make_dir(fs(), root_ino, "d");

  Tree() {
    make_file(fs(), d, "0");
    need(fs().unlink(d, "0"));  // a collector knows of d
    need(fs().sync_directory(d));
    need(fs().lookup(root_ino, "d"));
    store().reset_record();
  }
  FileSystem& fs() { return *holder.file_system; }
  FileSystem& other() { return *visitor.file_system; }
  ScriptedClient& store() { return *holder.client; }
  std::vector<std::string> stored_names() {
    std::vector<std::string> lines;
    for (const auto& line : store().trace()) {
      if (line.starts_with("store names")) lines.push_back(line.substr(line.find(' ', 6) + 1));
    }
    return lines;
  }
  /// In d; the other client knows it, then its removal is answered, and not stored.
  Ino removed_where_another_is() {
    const auto sub = make_dir(fs(), d, "sub");
    CHECK(ino_of(other(), d, "sub") == sub);
    volume.clock().advance(seconds(3));
    for (const char* name : {"1", "2", "3", "4"}) make_file(fs(), d, name);  // d is held again
    store().reset_record();
    for (const char* name : {"1", "2", "3", "4"}) make_file(fs(), sub, name);
    for (const char* name : {"1", "2", "3", "4"}) need(fs().unlink(sub, name));
    need(fs().rmdir(d, "sub"));
    CHECK(stored_names().empty());
    return sub;
  }
  bool has_entries(Ino ino) {
    const auto stored = inode_object_of(volume.cluster(), ino);
    return std::ranges::any_of(stored->keys, [](const auto& key) { return key.first.starts_with("n/"); });
  }
  std::string object(Ino ino) { return format::inode_object(ino); }
  /// The batch of d is applied, its answer is lost, and so is what it reads then to know.
  void store_without_knowing() {
    store().set_hook([object = object(d), applied = once_on("store names", {Fault::Kind::lost_answer_applied}),
                      is_applied = std::make_shared<std::atomic<bool>>(false),
                      has_failed = std::make_shared<std::atomic<bool>>(false)](const StepInfo& info) {
      if (info.step == "store names") *is_applied = true;
      const bool is_read_back = *is_applied && info.kind == StepKind::query && info.object == object;
      if (is_read_back && !has_failed->exchange(true)) return Fault{Fault::Kind::fail, ErrorCode::io};
      return applied(info);
    });
    CHECK(error_of(fs().sync_directory(d)) == ErrorCode::io);
  }
  void batches_fail(Ino ino) {
    store().set_hook([object = object(ino)](const StepInfo& info) {
      const bool is_of_it = info.step == "store names" && info.object == object;
      return is_of_it ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
    });
  }
  /// In each of which what is left is sent.
  void seconds_pass(unsigned how_many) {
    for (unsigned i = 0; i < how_many; ++i) {
      volume.clock().advance(seconds(1));
      fs().tick();
    }
  }
  void collect_all() {
    for (unsigned pass = 0; pass < 4; ++pass) collect(volume.cluster(), volume.clock());
  }
};

/// An access ACL that says no more than the mode 0711.
void set_mode_acl(Tree& t, Ino ino, SetgidBit setgid = SetgidBit::stays) {
  const auto acl = encode(acl_of("u::rwx,g::--x,o::--x"));
  need(t.fs().set_xattr(ino, "system.posix_acl_access", acl, XattrMode::create_or_replace, setgid));
}

SetAttributes opened_at(std::int64_t at) {
  SetAttributes changes;
  changes.mode = 0711;
  changes.atime = changes.mtime = TimeSpec{at, 0};
  return changes;
}

}  // namespace

TEST_CASE("directories are made, changed and removed at no cost before the answer") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  make_file(t.fs(), sub, "f");
  CHECK(need(t.fs().get_attributes(t.d)).attributes.nlink == 3);
  const auto changed = need(t.fs().set_attributes({}, sub, opened_at(1000))).attributes;
  CHECK(changed.mode == 0711);
  CHECK(changed.mtime == TimeSpec{1000, 0});
  CHECK(need(t.fs().lookup(t.d, "sub")).attributes.mtime == TimeSpec{1000, 0});
  need(t.fs().unlink(sub, "f"));
  need(t.fs().rmdir(t.d, "sub"));
  CHECK_FALSE(ino_of(t.fs(), t.d, "sub"));
  CHECK(need(t.fs().get_attributes(t.d)).attributes.nlink == 2);
  CHECK(t.store().trace() == std::vector<std::string>{});
  CHECK(t.store().counts().queries == 0);
}

TEST_CASE("the ACLs that cp -a gives a new directory and a file, which say a mode, cost nothing before the answer") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  const auto file = make_file(t.fs(), sub, "f");
  for (const Ino ino : {file, sub}) set_mode_acl(t, ino);
  need(t.fs().remove_xattr(sub, "system.posix_acl_default"));
  CHECK(t.store().trace() == std::vector<std::string>{});
  CHECK(t.store().counts().queries == 0);
  for (const auto& [parent, name] : {std::pair(t.d, "sub"), {sub, "f"}}) {
    CHECK(need(t.fs().lookup(parent, name)).attributes.mode == 0711);
    CHECK(need(t.other().lookup(parent, name)).attributes.mode == 0711);
  }
}

TEST_CASE("once a write has found room again, names are made behind again, also where no bytes are buffered") {
  Tree t;
  const auto file = create_file(t.fs(), "f");
  t.store().set_hook(always_on("write", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(error_of(write_at(t.fs(), file.handle, 0, "x")) == ErrorCode::no_space);
  t.store().set_hook(nullptr);
  t.store().reset_record();
  make_file(t.fs(), t.d, "waits");
  CHECK_FALSE(t.store().trace().empty());
  need(write_at(t.fs(), file.handle, 0, "x"));
  t.store().reset_record();
  make_file(t.fs(), t.d, "does not");
  CHECK(t.store().trace() == std::vector<std::string>{});
}

TEST_CASE("an ACL that says a mode, set behind, takes setgid along where the kernel says so, and moves ctime") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  SetAttributes setgid;
  setgid.mode = 02770;
  const auto before = need(t.fs().set_attributes({}, sub, setgid)).attributes.ctime;
  t.volume.clock().advance(std::chrono::milliseconds(100));
  set_mode_acl(t, sub, SetgidBit::goes);
  const auto after = need(t.fs().get_attributes(sub)).attributes;
  CHECK(after.mode == 0711);
  CHECK(after.ctime > before);
  CHECK(t.store().trace() == std::vector<std::string>{});
}

TEST_CASE("an ACL that says a mode leaves no key of the one that a new directory has inherited") {
  Tree t;
  const auto inherited = encode(acl_of("u::rwx,u:7:r-x,g::r--,m::rwx,o::---"));
  need(t.fs().set_xattr(t.d, "system.posix_acl_default", inherited, XattrMode::create_or_replace, SetgidBit::stays));
  const auto sub = make_dir(t.fs(), t.d, "sub");
  set_mode_acl(t, sub);
  CHECK(error_of(t.fs().get_xattr(sub, "system.posix_acl_access")) == ErrorCode::no_attribute);
  need(t.fs().unmount());
  const auto object = inode_object_of(t.volume.cluster(), sub);
  CHECK_FALSE(object->keys.contains(format::user_attribute_key("system.posix_acl_access")));
  CHECK(object->keys.contains(format::user_attribute_key("system.posix_acl_default")));
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("a directory's name is stored before what is in it, and what was in it before it is removed") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  make_file(t.fs(), sub, "f");
  SECTION("made") {
    need(t.fs().sync_directory(sub));
    CHECK(t.stored_names() == std::vector{t.object(t.d), t.object(sub)});
    CHECK(names_in(t.other(), sub) == std::vector<std::string>{"f"});
    CHECK(need(t.other().get_attributes(t.d)).attributes.nlink == 3);
  }
  SECTION("removed") {
    need(t.fs().unlink(sub, "f"));
    need(t.fs().rmdir(t.d, "sub"));
    need(t.fs().sync_directory(t.d));
    CHECK(t.stored_names() == std::vector{t.object(t.d), t.object(sub), t.object(t.d)});
    CHECK_FALSE(t.has_entries(sub));
    CHECK(names_in(t.other(), t.d).empty());
    CHECK(need(t.other().get_attributes(t.d)).attributes.nlink == 2);
  }
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE(
    "the attributes of a directory are stored after the names that came before, and before those that come after") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  make_file(t.fs(), sub, "f");
  need(t.fs().set_attributes({}, sub, opened_at(1000)));
  need(t.fs().sync_directory(sub));
  const auto seen = need(t.other().lookup(t.d, "sub")).attributes;
  CHECK(seen.mode == 0711);
  CHECK(seen.mtime == TimeSpec{1000, 0});
}

TEST_CASE("another client sees the mode of a new directory at once, and later changes of it, too") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  make_file(t.fs(), sub, "f");
  need(t.fs().set_attributes({}, sub, opened_at(1000)));
  const auto seen = need(t.other().lookup(t.d, "sub")).attributes;
  CHECK(seen.mode == 0711);
  CHECK(seen.mtime == TimeSpec{1000, 0});
  SetAttributes closed;
  closed.mode = 0700;
  need(t.fs().set_attributes({}, sub, closed));
  CHECK(need(t.other().get_attributes(sub)).attributes.mode == 0700);
}

TEST_CASE("a directory that is renamed after it was changed has the ctime of the rename, also once both are stored") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  const bool is_stored = GENERATE(false, true);
  CAPTURE(is_stored);
  if (is_stored) need(t.fs().sync_directory(sub));
  make_file(t.fs(), sub, "f");
  t.volume.clock().advance(seconds(1));
  need(t.fs().rename(t.d, "sub", t.d, "moved", RenameMode::replace));
  const auto renamed_at = need(t.fs().get_attributes(sub)).attributes.ctime;
  CHECK(renamed_at == t.volume.clock().wall_time());
  CHECK(need(t.other().lookup(t.d, "moved")).attributes.ctime == renamed_at);
  need(t.fs().sync_directory(sub));
  t.seconds_pass(10);
  CHECK(need(t.other().lookup(t.d, "moved")).attributes.ctime == renamed_at);
}

TEST_CASE("so does one that finds a new directory under another name") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub"), elsewhere = make_dir(t.other(), root_ino, "e");
  make_file(t.fs(), sub, "f");
  need(t.fs().set_attributes({}, sub, opened_at(1000)));
  need(t.fs().rename(t.d, "sub", elsewhere, "sub", RenameMode::replace));
  CHECK(need(t.other().lookup(elsewhere, "sub")).attributes.mode == 0711);
  SetAttributes closed;
  closed.mode = 0700;
  need(t.fs().set_attributes({}, sub, closed));
  CHECK(need(t.other().lookup(elsewhere, "sub")).attributes.mode == 0700);
}

TEST_CASE("who is in a directory that was removed finds nothing there, and makes nothing there") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  const auto handle = need(t.fs().open_directory(sub));
  need(t.fs().rmdir(t.d, "sub"));
  CHECK(need(t.fs().get_attributes(sub)).attributes.nlink == 0);
  CHECK_FALSE(ino_of(t.fs(), sub, "f"));
  CHECK(error_of(t.fs().create({}, sub, "f", 0644, O_RDWR | O_CREAT)) == ErrorCode::stale);
  CHECK(error_of(t.fs().make_node({}, sub, "s", {FileType::directory, 0755, 0, {}})) == ErrorCode::stale);
  make_file(t.fs(), t.d, "g");
  CHECK(error_of(t.fs().rename(t.d, "g", sub, "g", RenameMode::replace)) == ErrorCode::stale);
  CHECK(error_of(t.fs().rmdir(t.d, "sub")) == ErrorCode::not_found);
  t.fs().release_directory(handle);
  need(t.fs().sync_directory(t.d));
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("another client that is in a directory that was removed makes nothing there") {
  Tree t;
  const auto sub = t.removed_where_another_is();
  SECTION("while its client lives") {}
  SECTION("after its client has stored it, and died") {
    need(t.fs().sync_directory(t.d));
    t.store().crash();
  }
  SECTION("after its client has unmounted") { need(t.fs().unmount()); }
  CHECK(error_of(t.other().create({}, sub, "f", 0644, O_RDWR | O_CREAT)) == ErrorCode::stale);
  CHECK_FALSE(ino_of(t.other(), t.d, "sub"));
  t.collect_all();
  CHECK_FALSE(inode_object_of(t.volume.cluster(), sub));
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("a directory that was removed takes no names, whoever has looked at it meanwhile") {
  Tree t;
  const auto sub = t.removed_where_another_is();
  const auto looker = t.volume.new_client();
  const auto ask = [&] { return need(poll_liveness(*looker, {.asker = {}, .inodes = {sub}})).is_open(sub); };
  SECTION("before anything of that is stored") { CHECK(ask()); }
  SECTION("before its removal is stored") {
    need(t.fs().sync_directory(sub));
    REQUIRE(t.stored_names() == std::vector{t.object(sub)});
    SECTION("lccfs stat") { need(survey::read_inode_facts(*looker, sub)); }
    SECTION("a program of before") { ask(); }
  }
  SECTION("after it") {
    need(t.fs().sync_directory(t.d));
    SECTION("a dry run of a collector") {
      const auto report = need(reclaim::dry_run(*looker, t.volume.clock(), {.jobs = 1, .grace = seconds(0)}));
      CHECK(report.inodes_removed == 1);
      CHECK(looker->counts().notifies == 1);  // which asks for nothing
    }
    SECTION("a program of before") { CHECK_FALSE(ask()); }
  }
  CHECK(error_of(t.other().create({}, sub, "f", 0644, O_RDWR | O_CREAT)) == ErrorCode::stale);
  t.collect_all();
  CHECK_FALSE(inode_object_of(t.volume.cluster(), sub));
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("a directory with attributes that are not stored is in use, and its holder keeps it") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  need(t.fs().sync_directory(t.d));
  need(t.fs().set_attributes({}, sub, opened_at(1000)));
  t.store().reset_record();
  const auto looker = t.volume.new_client();
  CHECK(need(poll_liveness(*looker, {.asker = {}, .inodes = {sub}})).is_open(sub));
  make_file(t.fs(), sub, "f");
  CHECK(t.store().trace().empty());
}

TEST_CASE("a file that is stored before its new directories' names leaves no damage if its client dies then") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  const auto below = make_dir(t.fs(), sub, "below");
  const auto file = make_file(t.fs(), below, "f");
  need(t.fs().set_xattr(file, "user.a", "b", XattrMode::create_or_replace, SetgidBit::stays));
  REQUIRE(inode_object_of(t.volume.cluster(), file));
  CHECK(t.stored_names().empty());
  t.store().crash();
  CHECK(problems(t.volume.cluster()).empty());
  CHECK_FALSE(ino_of(t.other(), t.d, "sub"));
  for (unsigned pass = 0; pass < 4; ++pass) {
    CHECK(collect(t.volume.cluster(), t.volume.clock()).damaged.empty());
    t.volume.clock().advance(seconds(120));
  }
  for (const auto ino : {sub, below, file}) CHECK_FALSE(inode_object_of(t.volume.cluster(), ino));
}

TEST_CASE("a file that gets a name in a directory that is not stored yet leaves no damage if its client dies then") {
  Tree t;
  const auto file = make_file(t.fs(), t.d, "f");
  bool is_moved = true, loses_old_name = false;
  SECTION("by a move") {}
  SECTION("by a link") { is_moved = false; }
  SECTION("by a move, and another client removes its old one") {
    need(t.fs().sync_directory(t.d));
    loses_old_name = true;
  }
  const auto sub = make_dir(t.fs(), t.d, "sub");
  t.store().set_hook([object = t.object(sub)](const StepInfo& info) {
    const bool is_making = info.step == "create inode" && info.object == object;
    return is_making ? Fault{Fault::Kind::not_applied_and_crash} : Fault{};
  });
  const bool is_named = is_moved ? t.fs().rename(t.d, "f", sub, "f", RenameMode::replace).has_value()
                                 : t.fs().link(file, sub, "f").has_value();
  CHECK_FALSE(is_named);
  CHECK(problems(t.volume.cluster()).empty());
  if (loses_old_name) need(t.other().unlink(t.d, "f"));
  for (unsigned pass = 0; pass < 4; ++pass) {
    CHECK(collect(t.volume.cluster(), t.volume.clock()).damaged.empty());
    t.volume.clock().advance(seconds(120));
  }
  for (const auto ino : {sub, file}) CHECK_FALSE(inode_object_of(t.volume.cluster(), ino));
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("a directory whose removal was not stored when its client died is there") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  need(t.fs().sync_directory(t.d));
  need(t.fs().rmdir(t.d, "sub"));
  t.store().crash();
  CHECK(ino_of(t.other(), t.d, "sub") == sub);
  make_file(t.other(), sub, "f");
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("a directory that is not empty, or not known to be, is removed as ever, or is not") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  make_file(t.fs(), sub, "f");
  CHECK(error_of(t.fs().rmdir(t.d, "sub")) == ErrorCode::not_empty);
  const auto foreign = make_dir(t.other(), t.d, "foreign");
  for (const char* name : {"1", "2", "3", "4"}) make_file(t.fs(), t.d, name);
  t.store().reset_record();
  need(t.fs().rmdir(t.d, "foreign"));
  const auto trace = t.store().trace();
  CHECK(std::ranges::count(trace, "seal " + t.object(foreign)) == 1);
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("a removed directory's lease that is not used marks it dead") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  need(t.fs().rmdir(t.d, "sub"));
  t.volume.clock().advance(seconds(11));
  t.fs().tick();
  need(t.fs().unmount());
  const auto object = inode_object_of(t.volume.cluster(), sub);
  REQUIRE(object);
  CHECK(need(format::decode<format::StateRecord>(object->xattrs.at(format::xattr::state))).kind == Kind::dead);
  t.collect_all();
  CHECK_FALSE(inode_object_of(t.volume.cluster(), sub));
}

TEST_CASE("a name that a step is bringing into a directory keeps it from being removed, or finds it removed") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  const auto file = make_file(t.fs(), t.d, "f");
  bool is_removed = false;
  t.store().set_hook(before("add link", [&] { is_removed = t.fs().rmdir(t.d, "sub").has_value(); }));
  const bool is_linked = t.fs().link(file, sub, "g").has_value();
  t.store().set_hook(nullptr);
  CHECK(is_removed);
  CHECK_FALSE(is_linked);
  need(t.fs().sync_directory(t.d));
  CHECK(need(t.fs().get_attributes(file)).attributes.nlink == 1);
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("no directory is removed in memory while a step changes a name there, or while it has one") {
  FakeClock clock;
  HeldDirectories held(clock);
  const Ino p{70}, c{71};
  const Token tenure{InstanceId{7}, 1}, tenure_of_c{InstanceId{7}, 2};
  const txn::Name name(format::VolumeUuid{}, p, "c"), inside(format::VolumeUuid{}, c, "f");
  const format::EntryRecord record{c, FileType::directory, {InstanceId{7}, 5}};
  const HeldDirectories::Known none, entry = txn::Entry{encode(record), record};
  held.born(p, tenure, 10);
  held.may_write_behind(p, tenure);
  held.born(c, tenure_of_c, 10);
  held.may_write_behind(c, tenure_of_c);
  const auto log = [] { return 1; };
  const std::vector<HeldDirectories::Change> made{{name, none, entry}}, gone{{name, entry, none}};
  const std::vector<HeldDirectories::Change> filled{{inside, none, entry}}, emptied{{inside, entry, none}};
  REQUIRE(held.change({p, tenure, made}, log));
  const HeldDirectories::Changes removal{p, tenure, gone, c};
  held.hide({{&inside}});
  CHECK_FALSE(held.change(removal, log));
  held.show({{&inside}});
  REQUIRE(held.change({c, tenure_of_c, filled}, log));
  CHECK_FALSE(held.change(removal, log));
  REQUIRE(held.change({c, tenure_of_c, emptied}, log));
  held.pause(c);
  CHECK_FALSE(held.change(removal, log));
  held.resume(c);
  CHECK(held.change(removal, log));
  CHECK(held.removed_from(c) == p);
  CHECK_FALSE(held.change({c, tenure_of_c, filled}, log));
  CHECK_FALSE(held.end_unless_logged(c));
  held.stored(c, tenure_of_c, {{inside.key}}, 1, 11);
  CHECK(held.end_unless_logged(c));
  CHECK(held.removed_from(c) == p);
}

TEST_CASE("a collector finds what was removed in a directory that was not known to it") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  const auto file = make_file(t.fs(), sub, "f"), inner = make_dir(t.fs(), sub, "inner");
  need(t.fs().sync_directory(sub));
  need(t.fs().unlink(sub, "f"));
  need(t.fs().rmdir(sub, "inner"));
  need(t.fs().sync_directory(sub));
  t.store().crash();
  t.volume.clock().advance(seconds(120));
  CHECK(names_in(t.other(), sub).empty());
  t.collect_all();
  CHECK_FALSE(inode_object_of(t.volume.cluster(), file));
  CHECK_FALSE(inode_object_of(t.volume.cluster(), inner));
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("the count of subdirectories is right whatever else has changed it") {
  Tree t;
  for (const char* name : {"1", "2", "3"}) make_dir(t.fs(), t.d, name);
  need(t.fs().rmdir(t.d, "2"));
  need(t.fs().sync_directory(t.d));
  make_dir(t.fs(), t.d, "4");
  const auto elsewhere = make_dir(t.fs(), root_ino, "e");
  need(t.fs().rename(t.d, "1", elsewhere, "1", RenameMode::replace));
  make_dir(t.fs(), t.d, "5");
  need(t.fs().sync_directory(t.d));
  CHECK(need(t.other().get_attributes(t.d)).attributes.nlink == 2 + 3);
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("a batch that changes the count is stored once, whatever becomes of its answer, and beside another change") {
  Tree t;
  make_dir(t.fs(), t.d, "1");
  SECTION("an answer") {
    const auto kind =
        GENERATE(Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
    t.store().set_hook(once_on("store names", {kind}));
  }
  SECTION("the count") {
    t.store().set_hook(before("store names", [&] {
      t.volume.cluster().with_objects([&](scripted::Objects& objects) {
        objects.metadata().at(t.object(t.d)).xattrs[format::xattr::nsub] = encode(format::NumberRecord{7});
      });
    }));
  }
  need(t.fs().sync_directory(t.d));
  CHECK(names_in(t.other(), t.d) == std::vector<std::string>{"1"});
  const auto nlink = need(t.other().get_attributes(t.d)).attributes.nlink;
  CHECK((nlink == 3 || nlink == 2 + 8));
}

TEST_CASE("a batch that changes the count and may have been applied is tried again with all that was in it") {
  for (unsigned volume = 0; volume < 8; ++volume) {  // the order of names is another one in each
    Tree t;
    make_dir(t.fs(), t.d, "1");
    const auto file = need(t.fs().create({}, t.d, "f", 0600, O_WRONLY | O_CREAT | O_EXCL)).open;
    need(t.fs().rmdir(t.d, "1"));
    make_dir(t.fs(), t.d, "2");
    t.store_without_knowing();
    need(t.fs().fsync(file.handle, false));
    need(t.fs().sync_directory(t.d));
    CHECK(need(t.other().get_attributes(t.d)).attributes.nlink == 3);
    CHECK(problems(t.volume.cluster()).empty());
  }
}

TEST_CASE("what comes after a batch that may have been applied is not taken for stored with it") {
  for (unsigned volume = 0; volume < 8; ++volume) {  // the order of names is another one in each
    Tree t;
    const auto file = make_file(t.fs(), t.d, "f");
    t.store_without_knowing();
    make_dir(t.fs(), t.d, "1");
    static_cast<void>(make_file(t.fs(), t.d, "g"));
    need(t.fs().sync_directory(t.d));
    CHECK(std::ranges::is_permutation(names_in(t.other(), t.d), std::vector<std::string>{"1", "f", "g"}));
    CHECK(need(t.other().get_attributes(t.d)).attributes.nlink == 3);
    CHECK(need(t.other().lookup(t.d, "f")).attributes.ino == file);
    CHECK(problems(t.volume.cluster()).empty());
  }
}

TEST_CASE("a batch that changes the count leaves the same when it is tried again, whoever needs a file meanwhile") {
  Tree t;
  const auto third = t.volume.mount();
  const auto old = make_dir(*third.file_system, t.d, "old");  // which has the larger number
  t.volume.clock().advance(seconds(3));
  for (const Ino where : {t.d, old}) {
    for (const char* name : {"1", "2", "3", "4"}) {
      make_file(t.fs(), where, name);
      need(t.fs().unlink(where, name));
    }
    static_cast<void>(names_in(t.fs(), where));
    need(t.fs().sync_directory(where));
  }
  const auto file = make_file(t.fs(), t.d, "f");
  REQUIRE(file < old);
  need(t.fs().unlink(t.d, "f"));
  need(t.fs().rmdir(t.d, "old"));
  t.store_without_knowing();
  static_cast<void>(t.fs().get_attributes(file));
  t.volume.cluster().with_objects([&](scripted::Objects& objects) {  // so that it can become less
    objects.metadata().at(t.object(t.d)).xattrs[format::xattr::nsub] = encode(format::NumberRecord{3});
  });
  need(t.fs().sync_directory(t.d));
  CHECK(need(t.other().get_attributes(t.d)).attributes.nlink == 2 + 3);
}

TEST_CASE("what is lost of a directory takes along what is in the directories that were made there") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  make_file(t.fs(), sub, "f");
  t.volume.cluster().with_objects(
      [&](scripted::Objects& objects) { objects.metadata().at(t.object(t.d)).xattrs.erase(format::xattr::lease); });
  CHECK(error_of(t.fs().sync_directory(sub)) == ErrorCode::io);
  CHECK(error_of(t.fs().sync_directory(t.d)) == ErrorCode::io);
  CHECK(names_in(t.other(), t.d).empty());
  CHECK_FALSE(t.has_entries(sub));
}

TEST_CASE("a removal that is lost leaves the directory as it was") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  need(t.fs().sync_directory(t.d));
  need(t.fs().rmdir(t.d, "sub"));
  t.batches_fail(t.d);
  for (unsigned i = 0; i < 10000 && !t.fs().lookup(t.d, "sub"); ++i) {  // a try may take longer than one of them
    t.seconds_pass(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  t.store().set_hook(nullptr);
  CHECK(error_of(t.fs().sync_directory(t.d)) == ErrorCode::io);
  CHECK(ino_of(t.fs(), t.d, "sub") == sub);
  make_file(t.fs(), sub, "f");
  CHECK(ino_of(t.other(), sub, "f"));
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("a deep new tree is stored from the top, by whatever asks for its end") {
  Tree t;
  Ino at = t.d;
  for (const char* name : {"a", "b", "c"}) at = make_dir(t.fs(), at, name);
  const auto open = need(t.fs().create({}, at, "f", 0644, O_RDWR | O_CREAT));
  need(t.fs().fsync(open.open.handle, false));
  t.fs().release(open.open.handle);
  CHECK(t.stored_names().size() == 4);
  t.store().crash();
  Ino seen = t.d;
  for (const char* name : {"a", "b", "c", "f"}) seen = ino_of(t.other(), seen, name).value();
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("a step in a new directory comes after the directory's name") {
  Tree t;
  const auto file = make_file(t.fs(), root_ino, "f");
  need(t.fs().sync_directory(root_ino));
  const auto sub = make_dir(t.fs(), t.d, "sub");
  SECTION("a link") {
    need(t.fs().link(file, sub, "g"));
    need(t.other().unlink(root_ino, "f"));
  }
  SECTION("a create that asks the store, and its fsync") {
    t.volume.cluster().set_away([](const std::string& object) { return object == format::super_object; });
    t.volume.clock().advance(seconds(6));
    const auto open = need(t.fs().create({}, sub, "g", 0644, O_RDWR | O_CREAT));
    need(t.fs().fsync(open.open.handle, false));
    t.volume.cluster().set_away(nullptr);
  }
  t.store().crash();
  t.volume.clock().advance(seconds(120));
  CHECK(ino_of(t.other(), t.d, "sub") == sub);
  t.collect_all();
  CHECK(ino_of(t.other(), sub, "g"));
}

TEST_CASE("a batch that has changed the count, and is sent again, changes it once") {
  Tree t;
  make_dir(t.fs(), t.d, "1");
  t.store_without_knowing();
  make_dir(t.fs(), t.d, "2");
  need(t.fs().sync_directory(t.d));
  CHECK(need(t.other().get_attributes(t.d)).attributes.nlink == 2 + 2);
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("a count that is changed, and changed back, loses nothing") {
  Tree t;
  make_dir(t.fs(), t.d, "1");
  const auto set_count = [&](std::uint64_t count) {
    t.volume.cluster().with_objects([&](scripted::Objects& objects) {
      auto& object = objects.metadata().at(t.object(t.d));
      object.xattrs[format::xattr::nsub] = encode(format::NumberRecord{count});
      ++object.version;
    });
  };
  bool is_changed = false, is_changed_back = false;
  t.store().set_hook([&](const StepInfo& info) {
    if (info.step == "store names" && !std::exchange(is_changed, true)) set_count(1);
    const bool is_read = is_changed && info.read != nullptr && info.read->xattrs && info.object == t.object(t.d);
    if (is_read && !std::exchange(is_changed_back, true)) set_count(0);
    return Fault{};
  });
  need(t.fs().sync_directory(t.d));
  CHECK(is_changed_back);
  CHECK(need(t.other().get_attributes(t.d)).attributes.nlink == 3);
}

TEST_CASE("a client that has a new directory's number sees its mode, and may change it") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  need(t.fs().sync_directory(t.d));
  SetAttributes closed;
  closed.mode = 0700;
  SECTION("sees") {
    need(t.fs().set_attributes({}, sub, closed));
    CHECK(need(t.other().lookup(sub, ".")).attributes.mode == 0700);
  }
  SECTION("changes") {
    need(t.other().lookup(sub, "."));
    need(t.other().set_attributes({}, sub, closed));
    t.volume.clock().advance(seconds(3));
    CHECK(need(t.fs().get_attributes(sub)).attributes.mode == 0700);
    CHECK(need(t.fs().lookup(t.d, "sub")).attributes.mode == 0700);
  }
}

TEST_CASE("a mode that is changed beside an ACL leaves the ACL's flag") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  std::future<bool> changed;
  t.store().set_hook(before("set user attribute", [&] {
    changed = std::async(std::launch::async, [&] { return t.fs().set_attributes({}, sub, opened_at(1)).has_value(); });
  }));
  need(t.fs().set_xattr(sub, "system.posix_acl_default", encode(acl_of("u::rwx,u:7:r-x,g::r--,m::rwx,o::---")),
                        XattrMode::create_or_replace, SetgidBit::stays));
  CHECK(changed.get());
  t.store().set_hook(nullptr);
  need(t.fs().unmount());
  const auto object = inode_object_of(t.volume.cluster(), sub);
  const auto attr = need(format::decode<format::AttrRecord>(object->xattrs.at(format::xattr::attr)));
  CHECK((attr.flags & format::attr_flag::default_acl) != 0);
  CHECK(attr.mode == 0711);
}

TEST_CASE("the count in memory has what came beside a step") {
  Tree t;
  make_dir(t.other(), t.d, "foreign");
  t.volume.clock().advance(seconds(3));
  for (const char* name : {"1", "2", "3", "4", "5"}) make_file(t.fs(), t.d, name);
  need(t.fs().sync_directory(t.d));
  names_in(t.fs(), t.d);
  t.store().set_hook(before("remove entry", [&] { make_dir(t.fs(), t.d, "new"); }));
  need(t.fs().rmdir(t.d, "foreign"));
  t.store().set_hook(nullptr);
  CHECK(need(t.fs().get_attributes(t.d)).attributes.nlink == 3);
}

TEST_CASE("a new directory whose name is lost takes no names any more") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  make_file(t.fs(), sub, "f");
  t.volume.cluster().with_objects(
      [&](scripted::Objects& objects) { objects.metadata().at(t.object(t.d)).xattrs.erase(format::xattr::lease); });
  CHECK(error_of(t.fs().sync_directory(sub)) == ErrorCode::io);
  CHECK_FALSE(ino_of(t.fs(), sub, "f"));
  CHECK(error_of(t.fs().create({}, sub, "g", 0644, O_RDWR | O_CREAT)) == ErrorCode::stale);
  static_cast<void>(t.fs().unmount());
  t.volume.clock().advance(seconds(120));
  t.collect_all();
  CHECK_FALSE(inode_object_of(t.volume.cluster(), sub));
}

TEST_CASE("no step goes into a new directory that loses its name while the step waits for that") {
  Tree t;
  const auto file = make_file(t.fs(), root_ino, "f");
  need(t.fs().sync_directory(root_ino));
  const auto sub = make_dir(t.fs(), t.d, "sub");
  t.batches_fail(t.d);
  t.seconds_pass(10);
  t.volume.clock().advance(seconds(1));
  CHECK(error_of(t.fs().link(file, sub, "g")) == ErrorCode::io);
  CHECK_FALSE(t.has_entries(sub));
  CHECK(error_of(t.fs().link(file, sub, "g")) == ErrorCode::stale);
}

TEST_CASE("a directory that was made and removed, and is lost, stays removed") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  need(t.fs().rmdir(t.d, "sub"));
  t.store().set_hook([batches = t.object(t.d), removed = t.object(sub)](const StepInfo& info) {
    const bool is_batch = info.step == "store names" && info.object == batches;
    const bool is_release =
        info.step == "release directory lease" && info.object == removed;  // memory has it until then
    return is_batch || is_release ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  const auto make_file_there = [&] { return error_of(t.fs().create({}, sub, "g", 0644, O_RDWR | O_CREAT)); };
  for (unsigned i = 0; i < 5000 && make_file_there() == ErrorCode::io; ++i) {  // it is not lost yet
    t.seconds_pass(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  REQUIRE(inode_object_of(t.volume.cluster(), sub));
  CHECK(make_file_there() == ErrorCode::stale);
  CHECK(error_of(t.fs().sync_directory(t.d)) == ErrorCode::io);
}

TEST_CASE("a client that began before the upgrade makes nothing in a directory that was removed") {
  TestVolume volume;
  const auto set_feature = [&](bool has_it) {
    volume.cluster().with_objects([&](scripted::Objects& objects) {
      auto& object = objects.metadata().at(format::super_object);
      auto record = need(format::decode<format::SuperRecord>(object.xattrs.at(format::xattr::super)));
      record.incompat &= ~format::feature::names_behind;
      if (has_it) record.incompat |= format::feature::names_behind;
      object.xattrs[format::xattr::super] = encode(record);
      ++object.version;
    });
  };
  set_feature(false);
  Mount old = volume.mount();
  set_feature(true);
  Mount holder = volume.mount(directories_behind());
  auto& fs = *holder.file_system;
  const auto d = make_dir(fs, root_ino, "d"), sub = make_dir(fs, d, "sub");
  CHECK(ino_of(*old.file_system, d, "sub") == sub);
  volume.clock().advance(seconds(3));
  for (const char* name : {"1", "2", "3", "4"}) make_file(fs, d, name);
  need(fs.rmdir(d, "sub"));
  need(fs.unmount());
  CHECK(error_of(old.file_system->create({}, sub, "f", 0644, O_RDWR | O_CREAT)) == ErrorCode::stale);
}

TEST_CASE("a file that was renamed in two directories may lose one of its names") {
  Tree t;
  const auto e = make_dir(t.fs(), root_ino, "e");
  const auto file = make_file(t.fs(), t.d, "a");
  need(t.fs().link(file, e, "c"));
  for (const Ino where : {e, t.d}) need(t.fs().sync_directory(where));
  need(t.fs().rename(t.d, "a", t.d, "b", RenameMode::replace));
  need(t.fs().rename(e, "c", e, "x", RenameMode::replace));
  need(t.fs().sync_directory(e));
  t.volume.cluster().with_objects(
      [&](scripted::Objects& objects) { objects.metadata().at(t.object(t.d)).xattrs.erase(format::xattr::lease); });
  CHECK(error_of(t.fs().sync_directory(t.d)) == ErrorCode::io);
  CHECK(ino_of(t.fs(), e, "x") == file);
}

TEST_CASE("that no name of a directory is found does not make it dead") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub"), bare = make_dir(t.fs(), t.d, "bare");
  const auto file = make_file(t.fs(), sub, "f");
  need(t.fs().unmount());
  t.volume.cluster().with_objects([&](scripted::Objects& objects) {
    for (const Ino ino : {sub, bare}) objects.metadata().at(t.object(ino)).xattrs.erase(format::xattr::parent);
  });
  CHECK(ino_of(t.other(), sub, "f") == file);
  for (const Ino ino : {sub, bare}) make_file(t.other(), ino, "g");
  CHECK(ino_of(t.other(), t.d, "sub") == sub);
  t.collect_all();
  CHECK(inode_object_of(t.volume.cluster(), file));
}

TEST_CASE("a directory whose last changes are lost stays removed") {
  Tree t;
  const auto sub = make_dir(t.fs(), t.d, "sub");
  make_file(t.fs(), sub, "f");
  need(t.fs().sync_directory(sub));
  const auto handle = need(t.fs().open_directory(sub));
  need(t.fs().unlink(sub, "f"));
  need(t.fs().rmdir(t.d, "sub"));
  t.batches_fail(sub);
  t.seconds_pass(14);
  t.store().set_hook(nullptr);
  static_cast<void>(t.fs().sync_directory(t.d));
  CHECK_FALSE(ino_of(t.other(), t.d, "sub"));
  CHECK(error_of(t.fs().create({}, sub, "g", 0644, O_RDWR | O_CREAT)) == ErrorCode::stale);
  t.fs().release_directory(handle);
}

namespace {

/// Each in the one before it, until that many are made, or one is refused.
std::vector<Ino> make_chain(FileSystem& fs, Ino top, std::size_t length) {
  std::vector<Ino> chain{top};
  while (chain.size() <= length) {
    const auto made = fs.make_node({}, chain.back(), "sub", {FileType::directory, 0755, 0, {}});
    if (!made) break;
    chain.push_back(made->attributes.ino);
  }
  return chain;
}

/// Batch by batch, and no answer within the call that sends another one.
unsigned store_all_in_turn(Tree& t) {
  unsigned batches = 0;
  t.store().set_hook(always_on("store names", {Fault::Kind::hold}));
  for (t.fs().tick(); !t.store().held().empty(); ++batches) t.store().release();
  t.store().set_hook({});
  return batches;
}

}  // namespace

// Each waits for the name of the one above it. Where all are looked at again for each, that takes hours.
TEST_CASE("a long chain of new directories is stored from its top, in one batch each") {
  Tree t;
  const auto chain = make_chain(t.fs(), t.d, 2000);
  REQUIRE(chain.size() == 2001);
  SECTION("at once") {}
  SECTION("after the first has failed") {
    t.batches_fail(t.d);
    for (int i = 0; i < 5; ++i) t.seconds_pass(1);
  }
  SECTION("though somebody waits for the last") {
    t.batches_fail(t.d);
    CHECK(error_of(t.fs().sync_directory(chain.back())) == ErrorCode::io);
  }
  CHECK(store_all_in_turn(t) == 2000);
  CHECK(std::ranges::all_of(chain.begin(), chain.end() - 1, [&t](Ino ino) { return t.has_entries(ino); }));
}

TEST_CASE("as many of them as of other changes are not stored: the next one waits for its name") {
  Tree t;
  t.batches_fail(t.d);
  const auto chain = make_chain(t.fs(), t.d, 5000);
  CHECK(chain.size() == 4097);
  CHECK(error_of(t.fs().make_node({}, chain.back(), "sub", {FileType::directory, 0755, 0, {}})) == ErrorCode::io);
  make_dir(t.fs(), root_ino, "elsewhere");
  CHECK(store_all_in_turn(t) == 4096);
  make_dir(t.fs(), chain.back(), "sub");
}

TEST_CASE("a long chain of directories is removed from its end") {
  Tree t;
  const auto chain = make_chain(t.fs(), t.d, 2000);
  store_all_in_turn(t);
  for (auto above = chain.rbegin() + 1; above != chain.rend(); ++above) need(t.fs().rmdir(*above, "sub"));
  t.seconds_pass(0);
  store_all_in_turn(t);
  CHECK_FALSE(std::ranges::any_of(chain, [&t](Ino ino) { return t.has_entries(ino); }));
}
