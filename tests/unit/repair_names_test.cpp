// SPDX-License-Identifier: LGPL-2.1-or-later
// Names of which the store has lost one half, beside what else leads the collector to their inode.
#include <functional>
#include <string>
#include <vector>

#include "repair_damage.h"
#include "support/collecting.h"
#include "support/newer_record.h"
#include "txn/volume_txn.h"

namespace lccfs {
namespace {

using namespace test;
using repair::Orphans;
using scripted::Objects;
using Item = format::QueueItem;

const Names nothing_found;  // what is there instead is to be shown

scripted::MetaObject& object_in(Objects& objects, Ino ino) { return objects.metadata().at(format::inode_object(ino)); }

void log_item(SmallVolume& v, const Item& item) {
  need(v.volume.new_client()->apply(txn::append_queue_items(v.me, {{901, item}})));
}

/// What leads the collector to an inode of /d that has lost another name there.
void leave_trace_of(SmallVolume& v, Ino ino) {
  v.volume.cluster().with_objects([&](Objects& objects) {
    object_in(objects, v.d).keys[format::detached_key(ino, {v.me, 900})] = format::marker_value;
  });
  log_item(v, {Item::Kind::directory, v.d, {}, {}});
}

struct CutRepair {
  bool reached = false;
  std::shared_ptr<ScriptedCluster> cluster;
};

/// The volume after a repair that ends before its nth step.
CutRepair cut_repair(ScriptedCluster& damaged, FakeClock& clock, Orphans orphans, unsigned n) {
  const auto cut = damaged.clone();
  const auto client = cut->new_client();
  const NthStepOfRepair fault(n, {Fault::Kind::not_applied_and_crash, ErrorCode::io});
  client->set_hook(fault);
  static_cast<void>(try_repair(client, clock, orphans));
  clock.advance(std::chrono::seconds(61));
  return {fault.reached(), cut};
}

TEST_CASE(
    "an inode whose entry is lost gets it back though it has lost another name there, wherever its repair is cut") {
  const bool is_directory = GENERATE(false, true), by_key = GENERATE(true, false);
  const auto orphans = GENERATE(Orphans::keep, Orphans::remove);
  INFO((is_directory ? "a directory" : "a file") << (by_key ? ", by a d/ key" : ", by an item"));
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  auto& clock = v.volume.clock();
  const Ino ino = is_directory ? v.sub : v.file;
  if (by_key) leave_trace_of(v, ino);
  if (!by_key) log_item(v, {Item::Kind::inode, ino, {}, {}});
  const auto tree = tree_of(*cluster.clone(), clock);
  cluster.with_objects(
      [&](Objects& objects) { object_in(objects, v.d).keys.erase(v.key(is_directory ? "sub" : "file")); });
  for (unsigned n = 0;; ++n) {
    INFO("step " << n);
    const auto cut = cut_repair(cluster, clock, orphans, n);
    collect(*cut.cluster, clock);
    need(try_repair(cut.cluster->new_client(), clock, orphans));
    REQUIRE(findings_of(*cut.cluster) == nothing_found);
    REQUIRE(tree_of(*cut.cluster, clock) == tree);
    if (!cut.reached) break;
  }
}

/// As its client leaves it that has not come to correcting the count.
void keep_one_link(scripted::MetaObject& inode) {
  auto attr = need(format::decode<format::AttrRecord>(inode.xattrs.at("attr")));
  attr.nlink = 1;
  inode.xattrs.at("attr") = encode(attr);
}

TEST_CASE("what a rename has replaced comes back in no repair, though its reverse key does") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  {
    const auto mount = v.volume.mount();
    need(mount->rename(v.d, "file", root_ino, "plain", RenameMode::replace));
    need(mount->unmount());
  }
  const auto tree = tree_of(*cluster.clone(), v.volume.clock());
  cluster.with_objects([&](Objects& objects) {
    object_in(objects, root_ino).keys[format::reverse_key(v.plain, "plain")] = format::marker_value;
    keep_one_link(object_in(objects, v.plain));
  });
  need(try_repair(cluster.new_client(), v.volume.clock()));
  CHECK(findings_of(cluster) == nothing_found);
  CHECK(tree_of(cluster, v.volume.clock()) == tree);
}

TEST_CASE("the reverse key of an inode whose attr cannot be read is left, and tells its name once that can be read") {
  const bool is_noise = GENERATE(true, false);
  const auto orphans = GENERATE(Orphans::keep, Orphans::remove);
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  auto& clock = v.volume.clock();
  const auto tree = tree_of(*cluster.clone(), clock);
  Bytes attr;
  cluster.with_objects([&](Objects& objects) {
    attr = std::exchange(object_in(objects, v.file).xattrs.at("attr"), "noise");
    auto& keys = object_in(objects, v.d).keys;
    keys.erase(v.key("file"));
    if (is_noise) keys[v.key("file")] = "noise of some length";
  });
  const auto told = need(try_repair(cluster.new_client(), clock, orphans));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  CHECK(std::ranges::count(
            told.left, "stray reverse key: " + format::inode_object(v.d) + ": attr of the inode cannot be read") == 1);
  cluster.with_objects([&](Objects& objects) { object_in(objects, v.file).xattrs.at("attr") = attr; });
  need(try_repair(cluster.new_client(), clock, orphans));
  CHECK(findings_of(cluster) == nothing_found);
  CHECK(tree_of(cluster, clock) == tree);
}

/// What has become of the back-pointer of an inode of /d.
struct LostPointer {
  const char* what;
  std::function<void(SmallVolume&, scripted::MetaObject&)> harm;
};

const std::vector<LostPointer>& lost_pointers() {
  static const std::vector<LostPointer> all = {
      {"noise", [](SmallVolume&, scripted::MetaObject& inode) { inode.xattrs["parent"] = "noise"; }},
      {"lost", [](SmallVolume&, scripted::MetaObject& inode) { inode.xattrs.erase("parent"); }},
      {"lost beside an old one that was never trimmed",
       [](SmallVolume& v, scripted::MetaObject& inode) {
         inode.xattrs["parent"] = encode(format::BackPointerRecord{root_ino, {v.me, 3}});
       }},
  };
  return all;
}

TEST_CASE("an inode gets its name back from the reverse key alone, whatever has become of its back-pointer") {
  for (const auto& pointer : lost_pointers()) {
    for (const auto orphans : {Orphans::keep, Orphans::remove}) {
      for (const bool is_directory : {false, true}) {
        INFO("back-pointer " << pointer.what << (is_directory ? ", of a directory" : ""));
        SmallVolume v;
        auto& cluster = v.volume.cluster();
        const Ino ino = is_directory ? v.sub : v.file;
        log_item(v, {Item::Kind::inode, ino, {}, {}});
        const auto tree = tree_of(*cluster.clone(), v.volume.clock());
        cluster.with_objects([&](Objects& objects) {
          object_in(objects, v.d).keys.erase(v.key(is_directory ? "sub" : "file"));
          pointer.harm(v, object_in(objects, ino));
        });
        const auto told = need(try_repair(cluster.new_client(), v.volume.clock(), orphans));
        INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
        CHECK(findings_of(cluster) == nothing_found);
        CHECK(tree_of(cluster, v.volume.clock()) == tree);
      }
    }
  }
}

TEST_CASE("a reverse key gives no second name to an inode whose one name its back-pointer does not show yet") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  const bool is_directory = GENERATE(false, true);
  const Ino ino = is_directory ? v.sub : v.file;
  const auto tree = tree_of(*cluster.clone(), v.volume.clock());
  cluster.with_objects([&](Objects& objects) {
    object_in(objects, ino).xattrs["parent"] = "noise";
    object_in(objects, root_ino).keys[format::reverse_key(ino, "other")] = format::marker_value;
  });
  need(try_repair(cluster.new_client(), v.volume.clock()));
  CHECK(findings_of(cluster) == nothing_found);
  CHECK(tree_of(cluster, v.volume.clock()) == tree);
}

TEST_CASE("no name comes back in a directory that is dead, whose collector would delete what has it") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  Ino removed;
  {
    const auto mount = v.volume.mount();
    removed = make_dir(*mount.file_system, root_ino, "removed");
    need(mount->unmount());
  }
  cluster.with_objects([&](Objects& objects) {
    auto& root = object_in(objects, root_ino);
    root.keys.erase(v.key("removed"));
    root.keys.erase(format::reverse_key(removed, "removed"));
    auto& dead = object_in(objects, removed);
    dead.xattrs["state"] = encode(format::StateRecord{format::StateRecord::Kind::dead, {}, {}, {}});
    dead.keys[format::reverse_key(v.file, "old")] = format::marker_value;
    auto& d = object_in(objects, v.d);
    d.keys.erase(v.key("file"));
    d.keys.erase(format::reverse_key(v.file, "file"));
    object_in(objects, v.file).xattrs["parent"] = encode(format::BackPointerRecord{Ino{4000}, {v.me, 3}});
  });
  log_item(v, {Item::Kind::inode, removed, {}, {}});
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock()));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  CHECK(findings_of(cluster) == nothing_found);
  cluster.with_objects([&](Objects& objects) {
    CHECK_FALSE(objects.metadata().contains(format::inode_object(removed)));
    REQUIRE(objects.metadata().contains(format::inode_object(v.file)));
    CHECK(need(format::decode<format::StateRecord>(object_in(objects, v.file).xattrs.at("state"))).kind ==
          format::StateRecord::Kind::live);
  });
}

TEST_CASE("a pointer to the one directory that has half a name, which nobody can read, is kept beside a new one") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  {
    const auto mount = v.volume.mount();
    need(mount->link(v.file, root_ino, "second"));
    need(mount->unmount());
  }
  cluster.with_objects([&](Objects& objects) {
    object_in(objects, v.d).keys[v.key("file")] = "noise of some length";
    auto& inode = object_in(objects, v.file);
    std::erase_if(inode.keys, [](const auto& key) { return key.first.starts_with("p/"); });
    inode.xattrs["parent"] = encode(format::BackPointerRecord{v.d, {v.me, 3}});
    object_in(objects, v.plain).xattrs.at("attr") = "noise";
    object_in(objects, v.d).keys[format::reverse_key(v.plain, "file")] = format::marker_value;
  });
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock()));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  cluster.with_objects([&](Objects& objects) {
    const auto& d = object_in(objects, v.d);
    CHECK(d.keys.contains(v.key("file")));
    CHECK(d.keys.contains(format::reverse_key(v.file, "file")));
    const auto attr = need(format::decode<format::AttrRecord>(object_in(objects, v.file).xattrs.at("attr")));
    CHECK(attr.nlink == 2);
  });
}

TEST_CASE("a back-pointer that a newer version has written stays, beside one to where the name is") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  const Bytes pointer = record_of_newer_version();
  cluster.with_objects([&](Objects& objects) { object_in(objects, v.file).xattrs["parent"] = pointer; });
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock()));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  CHECK(findings_of(cluster) == Names{"newer version: " + format::inode_object(v.file)});
  cluster.with_objects([&](Objects& objects) {
    const auto& inode = object_in(objects, v.file);
    CHECK(inode.xattrs.at("parent") == pointer);
    const auto leads_there = [&](const auto& key) {
      const auto further = format::parse_back_pointer_key(key.first);
      return further && further->parent == v.d;
    };
    CHECK(std::ranges::count_if(inode.keys, leads_there) == 1);
  });
}

TEST_CASE("a directory keeps its count of subdirectories while a newer version has written the name of one") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  const auto nsub = v.objects_of(format::inode_object(v.d)).xattrs.at("nsub");
  cluster.with_objects(
      [&](Objects& objects) { object_in(objects, v.d).keys[v.key("sub")] = entry_of_newer_version(); });
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock()));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  CHECK(told.repaired == nothing_found);
  CHECK(v.objects_of(format::inode_object(v.d)).xattrs.at("nsub") == nsub);
}

TEST_CASE("an inode gets no second name where a newer version may have written its only one") {
  const std::string name = GENERATE("file", "sub");
  const bool is_noise_there = GENERATE(false, true), another_claims_it = GENERATE(false, true);
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  const Ino ino = name == "file" ? v.file : v.sub;
  cluster.with_objects([&](Objects& objects) {
    auto& d = object_in(objects, v.d);
    d.keys[v.key(name)] = entry_of_newer_version();
    d.keys[format::reverse_key(ino, "again")] = format::marker_value;
    if (is_noise_there) d.keys[v.key("again")] = "noise of some length";
    if (!another_claims_it) return;
    d.keys[format::reverse_key(v.plain, "again")] = format::marker_value;
    object_in(objects, v.plain).keys[format::back_pointer_key(v.d, {v.me, 3})] = format::marker_value;
  });
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock()));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  const auto keys = v.objects_of(format::inode_object(v.d)).keys;
  const auto again = keys.find(v.key("again"));
  CHECK((again != keys.end()) == is_noise_there);
  if (is_noise_there) CHECK_FALSE(format::decode<format::EntryRecord>(again->second).has_value());
  CHECK(keys.at(v.key(name)) == entry_of_newer_version());
}

TEST_CASE("an inode with two links gets its one lost name back beside one that a newer version has written") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([&](Objects& objects) {
    auto& d = object_in(objects, v.d);
    d.keys[v.key("file")] = entry_of_newer_version();
    d.keys[format::reverse_key(v.file, "again")] = format::marker_value;
    auto& attr = object_in(objects, v.file).xattrs["attr"];
    auto two_links = need(format::decode<format::AttrRecord>(attr));
    two_links.nlink = 2;
    attr = encode(two_links);
  });
  need(try_repair(cluster.new_client(), v.volume.clock()));
  const auto keys = v.objects_of(format::inode_object(v.d)).keys;
  CHECK(keys.contains(v.key("again")));
}

TEST_CASE(
    "an entry that a newer version has written goes to its right key, or stays where nothing tells which that is") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  std::string hash = v.key("file").substr(0, v.key("file").find_last_of('/') + 1), name = "file";
  bool is_proven = true;
  SECTION("the name is damaged") { name = "fila"; }
  SECTION("the hash is damaged") { hash = "n/0000000000000003/"; }
  SECTION("the hash is damaged, so that it is none") { hash.back() = 'z', is_proven = false; }
  SECTION("the name is damaged, and there is no reverse key") { name = "fila", is_proven = false; }
  SECTION("the name is damaged to one that no file has") { name = "..", is_proven = false; }
  const auto damaged = hash + name;
  cluster.with_objects([&](Objects& objects) {
    auto& keys = object_in(objects, v.d).keys;
    keys.erase(v.key("file"));
    keys[damaged] = entry_of_newer_version();
    if (!is_proven) keys.erase(format::reverse_key(v.file, "file"));
  });
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock()));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  const auto keys = v.objects_of(format::inode_object(v.d)).keys;
  const auto there = keys.find(is_proven ? v.key("file") : damaged);
  const bool is_kept = there != keys.end() && there->second == entry_of_newer_version();
  CHECK(is_kept);
}

TEST_CASE("an empty directory that has moved gets its half name back, though its dead client left it with a lease") {
  const bool is_pointer_lost = GENERATE(false, true), names_behind = GENERATE(false, true);
  TestVolume volume;
  Ino to, moved;
  {
    FileSystemOptions options;
    options.lease_after_changes = 1;
    options.names_behind = names_behind;
    const auto mount = volume.mount(options);
    const auto from = make_dir(*mount.file_system, root_ino, "from");
    to = make_dir(*mount.file_system, root_ino, "to");
    moved = make_dir(*mount.file_system, from, "moved");
    need(mount->rename(from, "moved", to, "moved", RenameMode::replace));
    need(mount->unmount());
  }
  auto& cluster = volume.cluster();
  const auto tree = tree_of(*cluster.clone(), volume.clock());
  cluster.with_objects([&](Objects& objects) {
    auto& inode = object_in(objects, moved);
    CHECK(inode.xattrs.contains("lease"));
    if (is_pointer_lost) {
      CHECK(std::erase_if(inode.keys, [](const auto& key) { return key.first.starts_with("p/"); }) == 1);
    } else {
      CHECK(object_in(objects, to).keys.erase(format::reverse_key(moved, "moved")) == 1);
    }
  });
  const auto told = need(try_repair(volume.new_client(), volume.clock()));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  CHECK(findings_of(cluster) == nothing_found);
  CHECK(tree_of(cluster, volume.clock()) == tree);
}

}  // namespace
}  // namespace lccfs
