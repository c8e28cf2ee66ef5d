// SPDX-License-Identifier: LGPL-2.1-or-later
// The leases of directories (docs/NAMES.md): what they keep others from, and how they are released.
#include <fcntl.h>

#include "support/acls.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

constexpr Token of_the_dead{InstanceId{1} /* the root's number: no instance ever has it */, 5};

void put_lease(ScriptedCluster& cluster, Ino directory, Token tenure) {
  cluster.with_objects([&](scripted::Objects& objects) {
    objects.metadata().at(format::inode_object(directory)).xattrs[format::xattr::lease] =
        encode(format::DirectoryLeaseRecord{tenure});
  });
}

bool is_leased(ScriptedCluster& cluster, Ino directory) {
  return inode_object_of(cluster, directory)->xattrs.contains(format::xattr::lease);
}

/// The instance of a mount: that of the token with which it makes a name.
InstanceId instance_of(TestVolume& volume, Mount& mount) {
  const auto ino = make_dir(*mount.file_system, root_ino, "whose");
  const auto object = inode_object_of(volume.cluster(), ino);
  need(mount->rmdir(root_ino, "whose"));
  return need(format::decode<format::AttrRecord>(object->xattrs.at(format::xattr::attr))).birth_token.instance;
}

/// /d with the file f and the directory sub; /e.
struct Tree {
  TestVolume volume;
  Mount fs = volume.mount();
  Ino d = make_dir(*fs.file_system, root_ino, "d");
  Ino e = make_dir(*fs.file_system, root_ino, "e");
  Ino f = make_file(*fs.file_system, d, "f");
  Ino sub = make_dir(*fs.file_system, d, "sub");
  ~Tree() { CHECK(problems(volume.cluster()).empty()); }
};

struct Change {
  const char* step;  // on the directory
  Ino Tree::*directory;
  std::function<void(Tree&)> make;
};

const std::vector<Change>& changes() {
  static const std::vector<Change> all{
      {"insert entry", &Tree::d, [](Tree& t) { make_file(*t.fs.file_system, t.d, "new"); }},
      {"insert entry", &Tree::d, [](Tree& t) { make_dir(*t.fs.file_system, t.d, "new"); }},
      {"insert entry", &Tree::e, [](Tree& t) { need(t.fs->link(t.f, t.e, "second")); }},
      {"remove entry", &Tree::d, [](Tree& t) { need(t.fs->unlink(t.d, "f")); }},
      {"remove entry", &Tree::d, [](Tree& t) { need(t.fs->rmdir(t.d, "sub")); }},
      {"seal", &Tree::sub, [](Tree& t) { need(t.fs->rmdir(t.d, "sub")); }},
      {"rename entries", &Tree::d, [](Tree& t) { need(t.fs->rename(t.d, "f", t.d, "g", RenameMode::replace)); }},
      {"exchange entries", &Tree::d, [](Tree& t) { need(t.fs->rename(t.d, "f", t.d, "sub", RenameMode::exchange)); }},
      {"mark entry", &Tree::d, [](Tree& t) { need(t.fs->rename(t.d, "f", t.e, "f", RenameMode::replace)); }},
      {"move entry in", &Tree::e, [](Tree& t) { need(t.fs->rename(t.d, "f", t.e, "f", RenameMode::replace)); }},
      {"move entry in", &Tree::e, [](Tree& t) { need(t.fs->rename(t.d, "sub", t.e, "sub", RenameMode::replace)); }},
      {"change attr", &Tree::d,
       [](Tree& t) {
         SetAttributes closed;
         closed.mode = 0700;
         need(t.fs->set_attributes({}, t.d, closed));
       }},
      {"set times", &Tree::d,
       [](Tree& t) {
         SetAttributes old;
         old.mtime = TimeSpec{1, 0};
         need(t.fs->set_attributes({}, t.d, old));
       }},
      {"set user attribute", &Tree::d,
       [](Tree& t) { need(t.fs->set_xattr(t.d, "user.a", "1", XattrMode::create_or_replace)); }},
      {"remove user attribute", &Tree::d, [](Tree& t) { need(t.fs->remove_xattr(t.d, "user.there")); }},
  };
  return all;
}

}  // namespace

TEST_CASE("each step on what a lease covers is refused while another client holds it") {
  const auto at = GENERATE(range(std::size_t{0}, changes().size()));
  const auto& change = changes()[at];
  INFO(change.step);
  Tree t;
  need(t.fs->set_xattr(t.d, "user.there", "1", XattrMode::create_or_replace));
  const auto directory = t.*change.directory;
  bool was_leased = false;
  t.fs.client->set_hook(before(change.step, [&] {
    put_lease(t.volume.cluster(), directory, of_the_dead);
    was_leased = true;
  }));
  change.make(t);
  REQUIRE(was_leased);
  const auto trace = t.fs.client->trace();
  const auto object = format::inode_object(directory);
  const auto released = std::ranges::find(trace, "release directory lease " + object);
  REQUIRE(released != trace.end());
  CHECK(std::find(released, trace.end(), change.step + (" " + object)) != trace.end());
  CHECK_FALSE(is_leased(t.volume.cluster(), directory));
}

TEST_CASE("lookups and listings of a directory that another client holds ask nobody: all it has answered is stored") {
  Tree t;
  put_lease(t.volume.cluster(), t.d, of_the_dead);
  CHECK(ino_of(*t.fs.file_system, t.d, "f") == t.f);
  CHECK_FALSE(ino_of(*t.fs.file_system, t.d, "none"));
  CHECK(names_in(*t.fs.file_system, t.d) == std::vector<std::string>{"f", "sub"});
  CHECK(is_leased(t.volume.cluster(), t.d));
  CHECK(error_of(t.fs->rmdir(root_ino, "d")) == ErrorCode::not_empty);
}

TEST_CASE("a lookup of a directory that another client holds, and its attributes, ask nobody") {
  Tree t;
  put_lease(t.volume.cluster(), t.d, of_the_dead);
  CHECK(ino_of(*t.fs.file_system, root_ino, "d") == t.d);
  need(t.fs->get_attributes(t.d));
  CHECK(is_leased(t.volume.cluster(), t.d));
}

TEST_CASE("a client that is asked for a directory of which its memory knows nothing releases it") {
  Tree t;
  auto other = t.volume.mount();
  put_lease(t.volume.cluster(), t.d, {instance_of(t.volume, other), 5});
  make_file(*t.fs.file_system, t.d, "new");
  CHECK_FALSE(is_leased(t.volume.cluster(), t.d));
  CHECK(other.client->trace().back() == "release directory lease " + format::inode_object(t.d));
  CHECK(t.fs.client->counts().fences == 0);
}

TEST_CASE("a client that meets a lease of its own of which its memory knows nothing releases it") {
  Tree t;
  put_lease(t.volume.cluster(), t.d, {instance_of(t.volume, t.fs), 5});
  make_file(*t.fs.file_system, t.d, "new");
  CHECK_FALSE(is_leased(t.volume.cluster(), t.d));
}

TEST_CASE("a client that died with a directory's lease is fenced before another changes the directory") {
  Tree t;
  auto dead = t.volume.mount();
  put_lease(t.volume.cluster(), t.d, {instance_of(t.volume, dead), 5});
  dead.client->crash();
  t.volume.clock().advance(std::chrono::seconds(61));
  make_file(*t.fs.file_system, t.d, "new");
  CHECK(t.fs.client->counts().fences == 1);
  CHECK_FALSE(is_leased(t.volume.cluster(), t.d));
}

TEST_CASE("a read-only client answers what is stored of a directory whose holder is gone, and changes nothing") {
  Tree t;
  FileSystemOptions looks_only;
  looks_only.read_only = true;
  auto reader = t.volume.mount(looks_only);
  put_lease(t.volume.cluster(), t.d, of_the_dead);
  CHECK(ino_of(*reader.file_system, t.d, "f") == t.f);
  CHECK(is_leased(t.volume.cluster(), t.d));
}
