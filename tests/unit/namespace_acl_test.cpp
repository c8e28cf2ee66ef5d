// SPDX-License-Identifier: LGPL-2.1-or-later
// ACLs of inodes: in step with the mode, inherited, and what they cost.
#include <fcntl.h>

#include "format/features.h"
#include "format/records.h"
#include "lccfs/volume.h"
#include "support/acls.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

const std::string access_acl = format::attribute::access_acl;
const std::string default_acl = format::attribute::default_acl;
const std::string some_acl = "u::rw-,u:7:r--,g::r--,m::rw-,o::---";
constexpr std::uint32_t acl_flags = format::attr_flag::access_acl | format::attr_flag::default_acl;

Result<> set(const Mount& fs, Ino ino, const std::string& name, const std::string& text,
             SetgidBit setgid = SetgidBit::stays) {
  return fs->set_xattr(ino, name, encode(acl_of(text)), XattrMode::create_or_replace, setgid);
}
/// Empty: there is none.
std::string get(const Mount& fs, Ino ino, const std::string& name) {
  const auto found = fs->get_xattr(ino, name);
  if (!found && found.error().code == ErrorCode::no_attribute) return {};
  return text_of(need(decode_acl(need(found))));
}
std::uint32_t mode_of(const Mount& fs, Ino ino) { return need(fs->get_attributes(ino)).attributes.mode; }
void chmod(const Mount& fs, Ino ino, std::uint32_t mode) {
  SetAttributes changes;
  changes.mode = mode;
  need(fs->set_attributes({}, ino, changes));
}
Ino make(const Mount& fs, Ino parent, const std::string& name, FileType type, std::uint32_t mode,
         std::uint32_t umask = 0) {
  return need(fs->make_node({.umask = umask}, parent, name, {type, mode, 0, "to"})).attributes.ino;
}

/// As stored: flags, and whether the keys are there that they speak of.
struct Stored {
  std::uint32_t flags = 0;
  bool has_access = false, has_default = false;
};
Stored stored(TestVolume& volume, Ino ino) {
  const auto object = inode_object_of(volume.cluster(), ino).value();
  return {need(format::decode<format::AttrRecord>(object.xattrs.at(format::xattr::attr))).flags & acl_flags,
          object.keys.contains(format::user_attribute_key(access_acl)),
          object.keys.contains(format::user_attribute_key(default_acl))};
}
void damage(TestVolume& volume, Ino ino, const std::string& name, const Bytes& bytes) {
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    objects.metadata().at(format::inode_object(ino)).keys[format::user_attribute_key(name)] = bytes;
  });
}

}  // namespace

TEST_CASE("an access ACL is kept, sets the mode in the same step, and is seen by another client") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto f = make(fs, root_ino, "f", FileType::regular, 04711);
  CHECK(get(fs, f, access_acl).empty());
  fs.client->reset_record();
  need(set(fs, f, access_acl, some_acl));
  CHECK(fs.client->counts() == StepCounts{.applies = 1});
  CHECK(get(fs, f, access_acl) == some_acl);
  CHECK(mode_of(fs, f) == 04660);
  CHECK(need(fs->list_xattrs(f)) == std::vector<std::string>{access_acl});
  const auto other = volume.mount();
  CHECK(get(other, f, access_acl) == some_acl);
  CHECK(mode_of(other, f) == 04660);
  need(set(other, f, access_acl, "u::r--,u:8:rwx,g::---,m::--x,o::r--"));
  CHECK(get(other, f, access_acl) == "u::r--,u:8:rwx,g::---,m::--x,o::r--");
  CHECK(mode_of(other, f) == 04414);
}

TEST_CASE("an access ACL that a mode says as well is not kept, and one that was there goes, in one step") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto f = make(fs, root_ino, "f", FileType::regular, 0600);
  need(set(fs, f, access_acl, "u::rwx,g::r-x,o::--x"));
  CHECK(mode_of(fs, f) == 0751);
  CHECK(need(fs->list_xattrs(f)).empty());
  need(set(fs, f, access_acl, some_acl));
  fs.client->reset_record();
  need(set(fs, f, access_acl, "u::rwx,g::---,o::---"));
  CHECK(fs.client->counts() == StepCounts{.applies = 1});
  CHECK(mode_of(fs, f) == 0700);
  CHECK(get(fs, f, access_acl).empty());
  CHECK(stored(volume, f).flags == 0);
  CHECK_FALSE(stored(volume, f).has_access);
}

TEST_CASE("setgid goes with an access ACL where the kernel says so, and with no default ACL") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto d = make(fs, root_ino, "d", FileType::directory, 02770);
  need(set(fs, d, access_acl, "u::rwx,u:7:rwx,g::rwx,m::rwx,o::---"));
  need(set(fs, d, default_acl, some_acl, SetgidBit::goes));
  CHECK(mode_of(fs, d) == 02770);
  need(set(fs, d, access_acl, "u::rwx,u:7:rwx,g::rwx,m::r-x,o::---", SetgidBit::goes));
  CHECK(mode_of(fs, d) == 0750);
  chmod(fs, d, 02770);
  need(set(fs, d, access_acl, "u::rwx,g::rwx,o::---", SetgidBit::goes));
  CHECK(mode_of(fs, d) == 0770);
}

TEST_CASE("an ACL that another client has just set is removed by one that has seen the inode without it") {
  TestVolume volume;
  auto fs = volume.mount();
  auto other = volume.mount();
  const auto f = make(fs, root_ino, "f", FileType::regular, 0640);
  need(other->lookup(root_ino, "f"));
  need(set(fs, f, access_acl, some_acl));
  need(other->remove_xattr(f, access_acl));
  CHECK_FALSE(stored(volume, f).has_access);
}

TEST_CASE("who may have which ACL, and which bytes are one") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto f = make(fs, root_ino, "f", FileType::regular, 0600);
  const auto fifo = make(fs, root_ino, "p", FileType::fifo, 0600);
  const auto link = make(fs, root_ino, "l", FileType::symlink, 0777);
  need(set(fs, fifo, access_acl, some_acl));
  CHECK(mode_of(fs, fifo) == 0660);
  CHECK(error_of(set(fs, f, default_acl, some_acl)) == ErrorCode::permission_denied);
  CHECK(error_of(set(fs, link, access_acl, some_acl)) == ErrorCode::unsupported);
  CHECK(error_of(set(fs, link, access_acl, "u::rwx,g::rwx,o::rwx")) == ErrorCode::unsupported);
  CHECK(error_of(set(fs, link, default_acl, some_acl)) == ErrorCode::unsupported);
  for (const Bytes& bytes : {Bytes(), Bytes("\2\0\0\0", 4), Bytes("rubbish"), encode(acl_of("u::rwx,g::rwx"))}) {
    CHECK(error_of(fs->set_xattr(f, access_acl, bytes, XattrMode::create_or_replace)) == ErrorCode::invalid);
  }
  CHECK(error_of(set(fs, f, "system.posix_acl_other", some_acl)) == ErrorCode::unsupported);
  CHECK(error_of(set(fs, Ino{99'999}, access_acl, some_acl)) == ErrorCode::stale);
  CHECK(error_of(fs->remove_xattr(Ino{99'999}, access_acl)) == ErrorCode::stale);
}

TEST_CASE("a removed ACL takes its flag along and leaves the mode; one that is not there is removed already") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto d = make(fs, root_ino, "d", FileType::directory, 0700);
  need(set(fs, d, access_acl, "u::rwx,u:7:rwx,g::---,m::rwx,o::---"));
  need(set(fs, d, default_acl, some_acl));
  CHECK(mode_of(fs, d) == 0770);
  CHECK(stored(volume, d).flags == acl_flags);
  need(fs->remove_xattr(d, access_acl));
  CHECK(mode_of(fs, d) == 0770);
  CHECK(get(fs, d, access_acl).empty());
  CHECK(get(fs, d, default_acl) == some_acl);
  need(fs->remove_xattr(d, default_acl));
  CHECK(stored(volume, d).flags == 0);
  CHECK_FALSE(stored(volume, d).has_access);
  CHECK_FALSE(stored(volume, d).has_default);
  fs.client->reset_record();
  need(fs->remove_xattr(d, access_acl));
  need(fs->remove_xattr(d, default_acl));
  CHECK(fs.client->counts().applies == 0);
}

TEST_CASE("chmod changes owner, mask and others of the access ACL in the same step") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto f = make(fs, root_ino, "f", FileType::regular, 0600);
  need(set(fs, f, access_acl, "u::rw-,u:7:rwx,g::r--,m::rwx,o::---"));
  fs.client->reset_record();
  chmod(fs, f, 04751);
  CHECK(fs.client->counts() == StepCounts{.applies = 1, .queries = 2});  // the ACL; the answer
  CHECK(get(fs, f, access_acl) == "u::rwx,u:7:rwx,g::r--,m::r-x,o::--x");
  CHECK(mode_of(fs, f) == 04751);
  fs.client->reset_record();
  chmod(fs, f, 0751);  // no permission: the ACL stays
  CHECK(fs.client->counts() == StepCounts{.applies = 1, .queries = 1});
  SetAttributes owner;
  owner.uid = 5;
  need(fs->set_attributes({}, f, owner));
  CHECK(get(fs, f, access_acl) == "u::rwx,u:7:rwx,g::r--,m::r-x,o::--x");
}

TEST_CASE("a chmod that another client's ACL overtakes changes the new ACL, also where the mode was the same") {
  const std::string newer = GENERATE("u::rw-,u:8:r--,g::---,m::rw-,o::---", "u::---,g::---,g:8:r--,m::--x,o::-w-");
  TestVolume volume;
  auto fs = volume.mount();
  auto other = volume.mount();
  const auto f = make(fs, root_ino, "f", FileType::regular, 0600);
  need(set(fs, f, access_acl, some_acl));
  fs.client->set_hook(before("change attr", [&] { need(set(other, f, access_acl, newer)); }));
  chmod(fs, f, 0750);
  CHECK(mode_of(fs, f) == 0750);
  CHECK(get(fs, f, access_acl) == text_of(with_permissions_of(acl_of(newer), 0750)));
}

TEST_CASE("an ACL that another client's chmod overtakes is set with its own mode") {
  TestVolume volume;
  auto fs = volume.mount();
  auto other = volume.mount();
  const auto f = make(fs, root_ino, "f", FileType::regular, 0600);
  need(set(fs, f, access_acl, some_acl));
  fs.client->set_hook(before("set user attribute", [&] { chmod(other, f, 04777); }));
  need(set(fs, f, access_acl, some_acl));
  CHECK(mode_of(fs, f) == 04660);
  CHECK(get(fs, f, access_acl) == some_acl);
}

TEST_CASE("setting an ACL, chmod with it and removing it are one step each though it runs twice or loses its answer") {
  for (const auto kind : {Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied}) {
    TestVolume volume;
    auto fs = volume.mount();
    const auto f = make(fs, root_ino, "f", FileType::regular, 0600);
    fs.client->set_hook(once_on("set user attribute", {kind, ErrorCode::io}));
    need(set(fs, f, access_acl, some_acl));
    CHECK(mode_of(fs, f) == 0660);
    fs.client->set_hook(once_on("change attr", {kind, ErrorCode::io}));
    chmod(fs, f, 0604);
    CHECK(get(fs, f, access_acl) == "u::rw-,u:7:r--,g::r--,m::---,o::r--");
    fs.client->set_hook(once_on("change attr", {kind, ErrorCode::io}));
    need(fs->remove_xattr(f, access_acl));
    CHECK(get(fs, f, access_acl).empty());
    CHECK(mode_of(fs, f) == 0604);
  }
}

TEST_CASE("without a default ACL the umask is taken off, but of a symlink") {
  TestVolume volume;
  auto fs = volume.mount();
  CHECK(mode_of(fs, make(fs, root_ino, "f", FileType::regular, 06666, 027)) == 06640);
  CHECK(mode_of(fs, make(fs, root_ino, "d", FileType::directory, 01777, 07022)) == 01755);
  CHECK(mode_of(fs, make(fs, root_ino, "p", FileType::fifo, 0666, 077)) == 0600);
  CHECK(mode_of(fs, make(fs, root_ino, "l", FileType::symlink, 0777, 077)) == 0777);
  const auto made = need(fs->create({.umask = 026}, root_ino, "c", 0666, O_WRONLY));
  CHECK(made.entry.attributes.mode == 0640);
  fs->release(made.open.handle);
}

TEST_CASE("a default ACL stands in for the umask: a file gets its access ACL, a directory both, a symlink none") {
  TestVolume volume;
  auto fs = volume.mount();
  const std::string handed_down = "u::rwx,u:7:rwx,g::r-x,m::rwx,o::---";
  const auto d = make(fs, root_ino, "d", FileType::directory, 02755);
  need(set(fs, d, default_acl, handed_down));
  const auto f = make(fs, d, "f", FileType::regular, 0664, 077);
  CHECK(mode_of(fs, f) == 0660);
  CHECK(get(fs, f, access_acl) == "u::rw-,u:7:rwx,g::r-x,m::rw-,o::---");
  CHECK(get(fs, f, default_acl).empty());
  const auto sub = make(fs, d, "sub", FileType::directory, 0755, 077);
  CHECK(mode_of(fs, sub) == 02750);
  CHECK(get(fs, sub, access_acl) == "u::rwx,u:7:rwx,g::r-x,m::r-x,o::---");
  CHECK(get(fs, sub, default_acl) == handed_down);
  CHECK(stored(volume, sub).flags == acl_flags);
  const auto link = make(fs, d, "l", FileType::symlink, 0777, 077);
  CHECK(mode_of(fs, link) == 0777);
  CHECK(need(fs->list_xattrs(link)).empty());
  const auto made = need(fs->create({.umask = 077}, sub, "c", 0600, O_WRONLY));
  CHECK(made.entry.attributes.mode == 0600);
  CHECK(get(volume.mount(), made.entry.attributes.ino, access_acl) == "u::rw-,u:7:rwx,g::r-x,m::---,o::---");
  fs->release(made.open.handle);
}

TEST_CASE("a default ACL that a mode says as well gives new files a mode, and directories the default") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto d = make(fs, root_ino, "d", FileType::directory, 0755);
  need(set(fs, d, default_acl, "u::rwx,g::r-x,o::---"));
  CHECK(get(fs, d, default_acl) == "u::rwx,g::r-x,o::---");
  const auto f = make(fs, d, "f", FileType::regular, 0666, 077);
  CHECK(mode_of(fs, f) == 0640);
  CHECK(need(fs->list_xattrs(f)).empty());
  const auto sub = make(fs, d, "sub", FileType::directory, 0777, 077);
  CHECK(mode_of(fs, sub) == 0750);
  CHECK(need(fs->list_xattrs(sub)) == std::vector<std::string>{default_acl});
}

TEST_CASE("making a file costs no read without a default ACL, one with it, and two writes either way") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto d = make(fs, root_ino, "d", FileType::directory, 0755);
  const auto cost_of = [&](const std::string& name) {
    std::ignore = fs->lookup(d, name);
    fs.client->reset_record();
    make(fs, d, name, FileType::regular, 0644);
    return fs.client->counts();
  };
  std::ignore = fs->lookup(root_ino, "d");
  CHECK(cost_of("a") == StepCounts{.applies = 2});
  need(set(fs, d, default_acl, some_acl));
  CHECK(cost_of("b") == StepCounts{.applies = 2, .queries = 1});
}

TEST_CASE("that there is no ACL is known from the attributes, while they live") {
  TestVolume volume;
  auto fs = volume.mount();
  auto other = volume.mount();
  const auto f = make(fs, root_ino, "f", FileType::regular, 0600);
  volume.clock().advance(std::chrono::seconds(2));
  CHECK_FALSE(fs->knows_no_xattr(f, access_acl));
  need(fs->get_attributes(f));
  fs.client->reset_record();
  CHECK(fs->knows_no_xattr(f, access_acl));
  CHECK(fs->knows_no_xattr(f, default_acl));
  CHECK_FALSE(fs->knows_no_xattr(f, "user.a"));
  CHECK(get(fs, f, access_acl).empty());
  CHECK(fs.client->counts() == StepCounts{});
  need(set(other, f, access_acl, some_acl));
  volume.clock().advance(std::chrono::milliseconds(1001));
  CHECK_FALSE(fs->knows_no_xattr(f, access_acl));
  CHECK(get(fs, f, access_acl) == some_acl);
  CHECK(fs.client->counts() == StepCounts{.queries = 1});
  CHECK_FALSE(fs->knows_no_xattr(f, access_acl));
}

TEST_CASE("where attributes are not to be trusted, nothing is known of an ACL from memory a moment later") {
  TestVolume volume;
  FileSystemOptions options;
  options.attributes_ttl = {};
  auto fs = volume.mount(options);
  const auto f = make(fs, root_ino, "f", FileType::regular, 0600);
  volume.clock().advance(std::chrono::milliseconds(1));
  CHECK_FALSE(fs->knows_no_xattr(f, access_acl));
}

TEST_CASE("bytes in the store that are no ACL are told, and can be replaced and removed") {
  for (const Bytes& bytes : {Bytes("\1"), Bytes("\1rubbish"), Bytes("\1\2\0\0\0", 5), Bytes("x")}) {
    TestVolume volume;
    auto fs = volume.mount();
    const auto d = make(fs, root_ino, "d", FileType::directory, 0700);
    need(set(fs, d, access_acl, some_acl));
    need(set(fs, d, default_acl, some_acl));
    damage(volume, d, access_acl, bytes);
    damage(volume, d, default_acl, bytes);
    CHECK(error_of(fs->get_xattr(d, access_acl)) == ErrorCode::corrupt);
    SetAttributes changes;
    changes.mode = 0711;
    CHECK(error_of(fs->set_attributes({}, d, changes)) == ErrorCode::corrupt);
    CHECK(error_of(fs->make_node({}, d, "f", {FileType::regular, 0644, 0, {}})) == ErrorCode::corrupt);
    CHECK(names_in(*fs.file_system, d).empty());
    need(set(fs, d, access_acl, some_acl));
    CHECK(get(fs, d, access_acl) == some_acl);
    need(fs->remove_xattr(d, default_acl));
    CHECK(mode_of(fs, make(fs, d, "f", FileType::regular, 0644)) == 0644);
  }
}

TEST_CASE("flags without ACLs say nothing, and chmod corrects them") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto d = make(fs, root_ino, "d", FileType::directory, 0700);
  need(set(fs, d, access_acl, some_acl));
  need(set(fs, d, default_acl, some_acl));
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    auto& keys = objects.metadata().at(format::inode_object(d)).keys;
    keys.erase(format::user_attribute_key(access_acl));
    keys.erase(format::user_attribute_key(default_acl));
  });
  CHECK(get(fs, d, access_acl).empty());
  CHECK(mode_of(fs, make(fs, d, "f", FileType::regular, 0666, 022)) == 0644);
  chmod(fs, d, 0711);
  CHECK(mode_of(fs, d) == 0711);
  CHECK(stored(volume, d).flags == format::attr_flag::default_acl);
}

TEST_CASE("a client that started before the upgrade sets no ACL, but keeps to those that are there") {
  TestVolume volume;
  const auto set_features = [&volume](std::uint64_t incompat) {
    volume.cluster().with_objects([&](scripted::Objects& objects) {
      auto& raw = objects.metadata().at(format::super_object).xattrs.at(format::xattr::super);
      auto super = need(format::decode<format::SuperRecord>(raw));
      super.incompat = incompat;
      raw = encode(super);
    });
  };
  set_features(format::known_bits(&format::SuperRecord::incompat) & ~format::feature::acls);
  auto old = volume.mount();
  const auto d = make(old, root_ino, "d", FileType::directory, 0700);
  CHECK(error_of(set(old, d, access_acl, some_acl)) == ErrorCode::unsupported);
  need(set(old, d, access_acl, "u::rwx,g::r-x,o::---"));
  CHECK(mode_of(old, d) == 0750);
  CHECK(need(upgrade_volume(*volume.new_client(), UpgradeMode::set)).features == std::vector<std::string>{"acls"});
  auto fs = volume.mount();
  need(set(fs, d, access_acl, some_acl));
  need(set(fs, d, default_acl, some_acl));
  volume.clock().advance(std::chrono::seconds(2));
  chmod(old, d, 0700);
  CHECK(get(fs, d, access_acl) == "u::rwx,u:7:r--,g::r--,m::---,o::---");
  const auto f = make(old, d, "f", FileType::regular, 0666);
  CHECK(get(fs, f, access_acl) == some_acl);
}
