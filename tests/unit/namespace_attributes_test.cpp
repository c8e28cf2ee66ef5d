// SPDX-License-Identifier: LGPL-2.1-or-later
// Attributes and extended attributes of everything.
#include <fcntl.h>

#include "support/acls.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

SetAttributes mode_of(std::uint32_t mode) {
  SetAttributes changes;
  changes.mode = mode;
  return changes;
}
SetAttributes times_of(TimeSpec atime, TimeSpec mtime) {
  SetAttributes changes;
  changes.atime = atime;
  changes.mtime = mtime;
  return changes;
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

constexpr const char* capability = "security.capability";

}  // namespace

TEST_CASE("mode, owner and times of every type are set, seen by all, and change ctime") {
  TestVolume volume;
  auto fs = volume.mount();
  for (const auto type : {FileType::regular, FileType::directory, FileType::symlink, FileType::fifo}) {
    const auto name = "n" + std::to_string(static_cast<int>(type));
    const auto ino = need(fs->make_node({}, root_ino, name, {type, 0644, 0, "to"})).attributes.ino;
    volume.clock().advance(std::chrono::milliseconds(10));
    auto changes = mode_of(06711);
    changes.uid = 11;
    changes.gid = 12;
    auto reply = need(fs->set_attributes({}, ino, changes)).attributes;
    CHECK(reply.mode == 06711);
    CHECK(reply.uid == 11);
    CHECK(reply.gid == 12);
    CHECK(reply.ctime == volume.clock().wall_time());
    volume.clock().advance(std::chrono::milliseconds(10));
    reply = need(fs->set_attributes({}, ino, times_of({-5, 1}, {6, 999'999'999}))).attributes;
    CHECK(reply.atime == TimeSpec{-5, 1});
    CHECK(reply.mtime == TimeSpec{6, 999'999'999});
    CHECK(reply.ctime == volume.clock().wall_time());
    const auto seen = need(volume.mount()->lookup(root_ino, name)).attributes;
    CHECK(seen.type == type);
    CHECK(seen.mode == 06711);
    CHECK(seen.uid == 11);
    CHECK(seen.atime == TimeSpec{-5, 1});
    CHECK(seen.mtime == TimeSpec{6, 999'999'999});
  }
}

TEST_CASE("mode and times of a file in one call are both set") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto f = make_file(*fs.file_system, root_ino, "f");
  auto changes = times_of({1, 2}, {3, 4});
  changes.mode = 0600;
  changes.size_bytes = 77;
  const auto reply = need(fs->set_attributes({}, f, changes)).attributes;
  CHECK(reply.mode == 0600);
  CHECK(reply.mtime == TimeSpec{3, 4});
  CHECK(reply.size_bytes == 77);
}

TEST_CASE("only a regular file has a size to set") {
  TestVolume volume;
  auto fs = volume.mount();
  SetAttributes size;
  size.size_bytes = 5;
  const auto fifo = need(fs->make_node({}, root_ino, "p", {FileType::fifo, 0644, 0, {}})).attributes.ino;
  CHECK(error_of(fs->set_attributes({}, root_ino, size)) == ErrorCode::is_directory);
  CHECK(error_of(fs->set_attributes({}, fifo, size)) == ErrorCode::invalid);
  CHECK(error_of(fs->set_attributes({}, Ino{999'999}, size)) == ErrorCode::stale);
  CHECK(error_of(fs->set_attributes({}, Ino{999'999}, mode_of(0600))) == ErrorCode::stale);
  CHECK(error_of(fs->get_attributes(Ino{999'999})) == ErrorCode::stale);
}

TEST_CASE("two clients change different attributes of one inode, and both changes stay") {
  TestVolume volume;
  auto a = volume.mount();
  auto b = volume.mount();
  const auto d = make_dir(*a.file_system, root_ino, "d");
  need(b->lookup(root_ino, "d"));
  need(a->set_attributes({}, d, mode_of(0700)));
  SetAttributes owner;
  owner.uid = 9;
  CHECK(need(b->set_attributes({}, d, owner)).attributes.uid == 9);
  const auto seen = need(volume.mount()->get_attributes(d)).attributes;
  CHECK(seen.mode == 0700);
  CHECK(seen.uid == 9);
}

TEST_CASE("what a client changes it sees at once, and so does another one that asks") {
  TestVolume volume;
  auto a = volume.mount();
  auto b = volume.mount();
  const auto d = make_dir(*a.file_system, root_ino, "d");
  need(b->get_attributes(d));
  need(a->set_attributes({}, d, mode_of(0700)));
  make_dir(*a.file_system, d, "sub");
  CHECK(need(a->get_attributes(d)).attributes.mode == 0700);
  CHECK(need(a->get_attributes(d)).attributes.nlink == 3);
  CHECK(need(b->get_attributes(d)).attributes.mode == 0700);
  CHECK(need(b->get_attributes(d)).attributes.nlink == 3);
}

TEST_CASE("a read that an own change has overtaken does not bring the old attributes back") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto d = make_dir(*fs.file_system, root_ino, "d");
  volume.clock().advance(std::chrono::seconds(2));
  fs.client->set_hook(before("query", [&] {
    // A read of the same directory by another thread has been sent; now ours.
    fs.client->set_hook({});
    need(fs->set_attributes({}, d, mode_of(0711)));
  }));
  std::ignore = fs->get_attributes(d);
  CHECK(need(fs->get_attributes(d)).attributes.mode == 0711);
}

TEST_CASE("a change of mode that the store refuses for ever ends") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto f = make_file(*fs.file_system, root_ino, "f");
  need(fs->set_attributes({}, f, mode_of(0640)));
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    auto& keys = objects.metadata().at(format::inode_object(f)).keys;
    for (auto& [key, value] : keys) {
      if (key.starts_with("l/")) value = "~";  // no number of a step is above it
    }
  });
  CHECK(error_of(fs->set_attributes({}, f, mode_of(0600))) == ErrorCode::busy);
}

TEST_CASE("extended attributes are kept, listed, replaced and removed") {
  TestVolume volume;
  auto fs = volume.mount();
  for (const Ino ino : {make_file(*fs.file_system, root_ino, "f"), make_dir(*fs.file_system, root_ino, "d")}) {
    const std::string binary("\0\1\xff", 3);
    need(fs->set_xattr(ino, "user.a", binary, XattrMode::create_or_replace));
    need(fs->set_xattr(ino, "user.empty", "", XattrMode::create));
    need(fs->set_xattr(ino, "trusted.t", "1", XattrMode::create));
    need(fs->set_xattr(ino, "security.s", "2", XattrMode::create));
    for (auto* client : {&fs}) {
      CHECK(need((*client)->get_xattr(ino, "user.a")) == binary);
      CHECK(need((*client)->get_xattr(ino, "user.empty")).empty());
      CHECK(sorted(need((*client)->list_xattrs(ino))) ==
            std::vector<std::string>{"security.s", "trusted.t", "user.a", "user.empty"});
    }
    auto other = volume.mount();
    CHECK(need(other->get_xattr(ino, "user.a")) == binary);
    need(fs->set_xattr(ino, "user.a", "new", XattrMode::replace));
    CHECK(need(fs->get_xattr(ino, "user.a")) == "new");
    need(fs->remove_xattr(ino, "user.a"));
    CHECK(error_of(fs->get_xattr(ino, "user.a")) == ErrorCode::no_attribute);
    CHECK(error_of(fs->remove_xattr(ino, "user.a")) == ErrorCode::no_attribute);
    CHECK(need(fs->list_xattrs(ino)).size() == 3);
  }
}

TEST_CASE("create and replace of an extended attribute look at whether it is there, whatever memory says") {
  TestVolume volume;
  auto a = volume.mount();
  auto b = volume.mount();
  const auto f = make_file(*a.file_system, root_ino, "f");
  need(b->lookup(root_ino, "f"));
  CHECK(error_of(a->set_xattr(f, "user.x", "1", XattrMode::replace)) == ErrorCode::no_attribute);
  need(a->set_xattr(f, "user.x", "1", XattrMode::create));
  CHECK(error_of(b->set_xattr(f, "user.x", "2", XattrMode::create)) == ErrorCode::exists);
  need(b->set_xattr(f, "user.x", "2", XattrMode::replace));
  CHECK(need(a->get_xattr(f, "user.x")) == "2");
  need(a->remove_xattr(f, "user.x"));
  CHECK(error_of(b->set_xattr(f, "user.x", "3", XattrMode::replace)) == ErrorCode::no_attribute);
  need(b->set_xattr(f, "user.x", "3", XattrMode::create));
}

TEST_CASE("names and values of extended attributes have limits, and only three spaces") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto f = make_file(*fs.file_system, root_ino, "f");
  const auto set = [&](const std::string& name, const std::string& value) {
    return error_of(fs->set_xattr(f, name, value, XattrMode::create_or_replace));
  };
  CHECK(set("user." + std::string(250, 'n'), std::string(65536, 'v')) == std::nullopt);
  CHECK(set("user." + std::string(251, 'n'), "v") == ErrorCode::range_too_small);
  CHECK(set("user.big", std::string(65537, 'v')) == ErrorCode::range_too_small);
  CHECK(set("user.", "v") == ErrorCode::invalid);
  CHECK(set("other", "v") == ErrorCode::unsupported);
  CHECK(error_of(fs->get_xattr(f, "system.other")) == ErrorCode::unsupported);
  CHECK(error_of(fs->remove_xattr(f, "other")) == ErrorCode::unsupported);
  CHECK(need(fs->get_xattr(f, "user." + std::string(250, 'n'))).size() == 65536);
  for (const auto& result : {error_of(fs->get_xattr(Ino{99'999}, "user.a")), error_of(fs->list_xattrs(Ino{99'999})),
                             error_of(fs->remove_xattr(Ino{99'999}, "user.a")),
                             error_of(fs->set_xattr(Ino{99'999}, "user.a", "", XattrMode::create))}) {
    CHECK(result == ErrorCode::stale);
  }
}

TEST_CASE("a name that would make the list longer than the kernel hands out is refused in time") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto f = make_file(*fs.file_system, root_ino, "f");
  const auto name_of = [](int i) { return "user." + std::string(247, 'n') + std::to_string(100 + i); };
  const auto set = [&](int i, XattrMode mode) { return error_of(fs->set_xattr(f, name_of(i), "v", mode)); };
  int taken = 0;
  while (taken < 400 && set(taken, XattrMode::create) == std::nullopt) ++taken;
  CHECK(taken == (60 << 10) / 256);
  CHECK(set(taken, XattrMode::create_or_replace) == ErrorCode::no_space);
  CHECK(set(0, XattrMode::replace) == std::nullopt);
  CHECK(set(1, XattrMode::create_or_replace) == std::nullopt);
  std::size_t list_bytes = 0;
  for (const auto& name : need(fs->list_xattrs(f))) list_bytes += name.size() + 1;
  CHECK(list_bytes < 65536);
  need(fs->remove_xattr(f, name_of(0)));
  CHECK(set(taken, XattrMode::create) == std::nullopt);
}

TEST_CASE("a list of extended attributes may be longer than a page") {
  TestVolume volume({}, [] {
    ScriptedCluster::Options options;
    options.page_limit = 10;
    return options;
  }());
  auto fs = volume.mount();
  const auto f = make_file(*fs.file_system, root_ino, "f");
  for (int i = 0; i < 35; ++i) need(fs->set_xattr(f, "user." + std::to_string(i), "v", XattrMode::create));
  CHECK(need(fs->list_xattrs(f)).size() == 35);
}

TEST_CASE("an open file's security.capability is asked for once while attributes live, and then again") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto file = create_file(*fs.file_system, "f");
  CHECK(fs->knows_no_xattr(file.ino, capability));
  volume.clock().advance(std::chrono::seconds(2));
  CHECK_FALSE(fs->knows_no_xattr(file.ino, capability));
  fs.client->reset_record();
  for (int i = 0; i < 5; ++i) CHECK(error_of(fs->get_xattr(file.ino, capability)) == ErrorCode::no_attribute);
  CHECK(fs.client->counts() == StepCounts{.queries = 1});
  CHECK(fs->knows_no_xattr(file.ino, capability));
  need(fs->set_xattr(file.ino, capability, "cap", XattrMode::create));
  CHECK_FALSE(fs->knows_no_xattr(file.ino, capability));
}

TEST_CASE("security.capability is found when set, gone when removed, and its flag goes with it") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto file = create_file(*fs.file_system, "f");
  CHECK(error_of(fs->get_xattr(file.ino, capability)) == ErrorCode::no_attribute);
  CHECK(error_of(fs->remove_xattr(file.ino, capability)) == ErrorCode::no_attribute);
  need(fs->set_xattr(file.ino, capability, "cap", XattrMode::create_or_replace));
  CHECK(need(fs->get_xattr(file.ino, capability)) == "cap");
  CHECK(need(fs->list_xattrs(file.ino)) == std::vector<std::string>{capability});
  CHECK(need(volume.mount()->get_xattr(file.ino, capability)) == "cap");
  need(fs->remove_xattr(file.ino, capability));
  fs.client->reset_record();
  CHECK(error_of(fs->get_xattr(file.ino, capability)) == ErrorCode::no_attribute);
  CHECK(fs.client->counts() == StepCounts{});
  CHECK(error_of(volume.mount()->get_xattr(file.ino, capability)) == ErrorCode::no_attribute);
  close_file(*fs.file_system, file.handle);
}

TEST_CASE("setting an extended attribute is one step though it runs twice or loses its answer") {
  for (const auto kind : {Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied}) {
    TestVolume volume;
    auto fs = volume.mount();
    const auto f = make_file(*fs.file_system, root_ino, "f");
    fs.client->set_hook(once_on("set user attribute", {kind, ErrorCode::io}));
    need(fs->set_xattr(f, "user.a", "1", XattrMode::create));
    fs.client->set_hook(once_on("remove user attribute", {kind, ErrorCode::io}));
    need(fs->remove_xattr(f, "user.a"));
  }
}

TEST_CASE(
    "who has lost a file to another owner changes neither mode, owner nor ACL, though the kernel still lets him") {
  TestVolume volume;
  auto a = volume.mount(), b = volume.mount();
  const Caller user{1000, 1000, 0}, other{1001, 1001, 0};
  const auto owned_by = [](std::uint32_t uid) {
    SetAttributes changes;
    changes.uid = uid;
    return changes;
  };
  const auto mode_of = [](std::uint32_t mode) {
    SetAttributes changes;
    changes.mode = mode;
    return changes;
  };
  for (const bool is_directory : {false, true}) {
    const auto name = is_directory ? "d" : "f";
    const Ino ino = is_directory ? make_dir(*a.file_system, root_ino, name) : make_file(*a.file_system, root_ino, name);
    need(a->set_attributes({}, ino, owned_by(1000)));
    need(a->set_attributes(user, ino, mode_of(0755)));
    need(b->set_attributes({}, ino, owned_by(1001)));
    CHECK(error_of(a->set_attributes(user, ino, mode_of(04755))) == ErrorCode::not_permitted);
    CHECK(error_of(a->set_attributes(user, ino, owned_by(1000))) == ErrorCode::not_permitted);
    const auto acl = encode(acl_of("u::rwx,u:1000:rwx,g::r--,m::rwx,o::---"));
    CHECK(error_of(a->set_xattr(ino, "system.posix_acl_access", acl, XattrMode::create_or_replace, SetgidBit::stays,
                                user)) == ErrorCode::not_permitted);
    CHECK((need(b->get_attributes(ino)).attributes.mode & 07777) == 0755);
    need(a->set_attributes(other, ino, mode_of(0700)));
    need(a->set_attributes({}, ino, mode_of(0711)));
  }
}

TEST_CASE("a new owner changes mode and ACL at once, whatever memory has of the last one") {
  for (const bool is_acl : {false, true}) {
    TestVolume volume;
    auto a = volume.mount(), b = volume.mount();
    const Ino file = make_file(*a.file_system, root_ino, "f");
    SetAttributes owner, mode;
    owner.uid = 1000;
    mode.mode = 0640;
    need(a->set_attributes({}, file, mode));
    need(b->set_attributes({}, file, owner));
    const Caller user{1000, 1000, 0};
    if (!is_acl) need(a->set_attributes(user, file, mode));
    const auto acl = encode(acl_of("u::rwx,u:1001:rwx,g::r--,m::rwx,o::---"));
    if (is_acl)
      need(a->set_xattr(file, "system.posix_acl_access", acl, XattrMode::create_or_replace, SetgidBit::stays, user));
  }
}

TEST_CASE("a file becomes setgid for a group of its owner alone") {
  TestVolume volume;
  auto mount = volume.mount();
  const Ino file = make_file(*mount.file_system, root_ino, "f");
  SetAttributes owner, setgid;
  owner.uid = 1000;
  owner.gid = 5;
  setgid.mode = 02755;
  need(mount->set_attributes({}, file, owner));
  const auto mode_by = [&](const Caller& caller) {
    return need(mount->set_attributes(caller, file, setgid)).attributes.mode & 07777;
  };
  CHECK(mode_by({1000, 1000, 0}) == 0755);
  CHECK(mode_by({1000, 5, 0}) == 02755);
  CHECK(mode_by({}) == 02755);
}

TEST_CASE("a new file with the group of a setgid directory is setgid only for a member of the group") {
  TestVolume volume;
  auto mount = volume.mount();
  const Ino directory = make_dir(*mount.file_system, root_ino, "d");
  SetAttributes handed_down;
  handed_down.gid = 5;
  handed_down.mode = 02777;
  need(mount->set_attributes({}, directory, handed_down));
  const auto mode_by = [&](const Caller& caller, const std::string& name) {
    return need(mount->make_node(caller, directory, name, {FileType::regular, 02777, 0, {}})).attributes.mode & 07777;
  };
  CHECK(mode_by({1000, 1000, 0}, "by another") == 0777);
  CHECK(mode_by({1000, 5, 0}, "by a member") == 02777);
  CHECK(mode_by({}, "by root") == 02777);
}

TEST_CASE("attributes whose read is answered late are trusted for what is left of their time") {
  TestVolume volume;
  auto maker = volume.mount();
  auto reader = volume.mount();
  const Ino file = make_file(*maker.file_system, root_ino, "f");
  const auto late = std::chrono::milliseconds(GENERATE(400, 5000));
  volume.clock().advance(std::chrono::seconds(2));
  const auto left = std::max(std::chrono::milliseconds(0), std::chrono::milliseconds(1000) - late);
  reader.client->set_hook([&volume, late, object = format::inode_object(file)](const StepInfo& info) {
    if (info.kind == StepKind::query && info.object == object) volume.clock().advance(late);
    return Fault{};
  });
  CHECK(need(reader->get_attributes(file)).attributes_ttl == left);
  CHECK(need(reader->lookup(root_ino, "f")).attributes_ttl == left);
  reader.client->set_hook(nullptr);
}
