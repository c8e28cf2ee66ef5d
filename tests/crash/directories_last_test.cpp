// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A directory's object goes last (docs/PROTOCOL.md section 5): after all that points to it and has no name. So one that
// is not there was lost by the store, and then nothing is garbage for its sake.
#include <cstdio>
#include <functional>

#include "support/catch.h"
#include "support/collecting.h"
#include "unit/repair_volume.h"

namespace lccfs {
namespace {

using namespace test;

using Names = std::set<std::string>;
using std::chrono::minutes;
using std::chrono::seconds;

const Names empty_volume{"Super", "Alloc", "Inode.1"};

struct CaseCounter {
  unsigned crashes = 0, repeats = 0;
  ~CaseCounter() { std::printf("directories go last: %u crashes, %u repeats and lost answers\n", crashes, repeats); }
} cases;

/// Live inodes that point to a directory that is not there.
Names adrift(ScriptedCluster& cluster) {
  Names found;
  cluster.with_objects([&found](scripted::Objects& objects) {
    for (const auto& [name, object] : objects.metadata()) {
      const auto parent = object.xattrs.find("parent");
      if (parent == object.xattrs.end() || state_of(object) == format::StateRecord::Kind::dead) continue;
      const Ino directory = need(format::decode<format::BackPointerRecord>(parent->second)).parent;
      if (!objects.metadata().contains(format::inode_object(directory))) found.insert(name);
    }
  });
  return found;
}

void lose(ScriptedCluster& cluster, Ino ino) {
  cluster.with_objects([ino](scripted::Objects& objects) { objects.metadata().erase(format::inode_object(ino)); });
}

NewNode node_of(FileType type) { return {type, 0700, 0, type == FileType::symlink ? "its target" : ""}; }

// ---- emptied by force

/// A tree of three levels, whose name was lost, in the queue of a client that has died.
std::shared_ptr<ScriptedCluster> nameless_tree() {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto top = make_dir(*mount.file_system, root_ino, "top");
  const auto middle = make_dir(*mount.file_system, top, "middle");
  make_file(*mount.file_system, top, "file");
  make_file(*mount.file_system, middle, "file");
  make_dir(*mount.file_system, middle, "below");
  need(mount->make_node({}, middle, "link", node_of(FileType::symlink)));
  need(mount->unmount());
  volume.cluster().with_objects([](scripted::Objects& objects) {
    auto& root = objects.metadata().at("Inode.1");
    std::erase_if(root.keys,
                  [](const auto& key) { return key.first.starts_with("n/") || key.first.starts_with("i/"); });
    root.xattrs["nsub"] = encode(format::NumberRecord{0});
  });
  TestCollector logger(volume.cluster(), volume.clock());
  need(logger.instance().log_items({{format::QueueItem::Kind::inode, top, {}, {}}}));
  logger.client().crash();
  return volume.cluster().clone();
}

TEST_CASE("a directory emptied by force stays until its children are gone, wherever its collector is cut") {
  const auto tree = nameless_tree();
  for (const auto kind :
       {Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash, Fault::Kind::crash_and_land_later,
        Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied}) {
    for (unsigned n = 0;; ++n) {
      INFO(lccfs::describe(kind) << ", the collector's change " << n);
      FakeClock clock;
      const auto cluster = tree->clone();
      TestCollector collector(*cluster, clock);
      const NthMutation hook(n, {kind});
      collector.client().set_hook(hook);
      static_cast<void>(collector.try_pass());
      if (!hook.reached()) break;
      ++(collector.client().crashed() ? cases.crashes : cases.repeats);
      CHECK(adrift(*cluster) == Names{});
      TestCollector other(*cluster, clock);
      other.pass();
      collector.client().land_late_steps();
      CHECK(adrift(*cluster) == Names{});
      if (!collector.client().crashed()) collector.end();
      CHECK(other.pass().damaged.empty());
      other.end();
      CHECK(object_names(*cluster) == empty_volume);
      CHECK(findings_of(*cluster).empty());
    }
  }
}

// ---- lost by the store

/// A directory with one of each, made by a client that has died; the store has lost its object.
struct LostDirectory {
  explicit LostDirectory(const std::shared_ptr<ScriptedCluster>& a_cluster) : cluster(a_cluster) {}
  static LostDirectory make() {
    TestVolume volume(small_objects());
    auto mount = volume.mount();
    auto& fs = *mount.file_system;
    const auto directory = make_dir(fs, root_ino, "directory");
    const auto file = need(fs.create({}, directory, "file", 0600, O_RDWR));
    need(write_at(fs, file.open.handle, object_bytes, "some bytes"));
    close_file(fs, file.open.handle);
    const auto below = make_dir(fs, directory, "below");
    make_file(fs, below, "deep");
    for (const auto type : {FileType::regular, FileType::directory, FileType::symlink, FileType::fifo}) {
      need(fs.make_node({}, directory, "another" + std::to_string(static_cast<int>(type)), node_of(type)));
    }
    mount.client->crash();
    lose(volume.cluster(), directory);
    LostDirectory lost(volume.cluster().clone());
    lost.objects = object_names(*lost.cluster);
    std::erase_if(lost.objects, [](const auto& name) { return name.starts_with("Session."); });
    lost.children = adrift(*lost.cluster);
    return lost;
  }

  std::shared_ptr<ScriptedCluster> cluster;
  Names objects, children;
};

Names told_of(const reclaim::PassReport& report) {
  Names objects;
  for (const auto& line : report.damaged) objects.insert(line.substr(0, line.find(": ")));
  return objects;
}

TEST_CASE("what was in a directory that the store has lost is left, and named, though whoever made it has died") {
  const auto lost = LostDirectory::make();
  REQUIRE(lost.children.size() == 6);
  for (const auto kind : {Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash,
                          Fault::Kind::crash_and_land_later, Fault::Kind::applied_twice}) {
    for (unsigned n = 0;; ++n) {
      INFO(lccfs::describe(kind) << ", the collector's change " << n);
      FakeClock clock;
      const auto cluster = lost.cluster->clone();
      TestCollector collector(*cluster, clock);
      const NthMutation hook(n, {kind});
      collector.client().set_hook(hook);
      const auto first = collector.try_pass();
      if (!hook.reached()) {
        CHECK(told_of(need(first)) == lost.children);
        break;
      }
      ++(collector.client().crashed() ? cases.crashes : cases.repeats);
      if (!collector.client().crashed()) collector.end();
      TestCollector other(*cluster, clock);
      other.pass();
      CHECK(other.pass().damaged.empty());  // nothing in the queue leads there any more: lccfs-fsck sees orphans
      other.end();
      CHECK(object_names(*cluster) == lost.objects);
      CHECK(adrift(*cluster) == lost.children);
    }
  }
}

TEST_CASE("a dry run names what was in a directory that the store has lost, and counts none of it as garbage") {
  const auto lost = LostDirectory::make();
  FakeClock clock;
  const auto report = need(reclaim::dry_run(*lost.cluster->new_client(), clock, {.jobs = 1, .grace = seconds(0)}));
  CHECK(told_of(report) == lost.children);
  CHECK(report.inodes_removed == 0);
}

TEST_CASE("repairs find names for what a lost directory held, and a collector before them takes nothing") {
  const auto lost = LostDirectory::make();
  const bool collected_before = GENERATE(false, true);
  FakeClock clock;
  if (collected_before) {
    collect(*lost.cluster, clock);
    CHECK(findings_of(*lost.cluster).size() >= lost.children.size());
  }
  need(try_repair(lost.cluster->new_client(), clock, repair::Orphans::keep));
  CHECK(findings_of(*lost.cluster).empty());
  auto mount = Mount{lost.cluster->new_client(), nullptr};
  mount.file_system = need(mount_volume(mount.client, clock, {}));
  auto& fs = *mount.file_system;
  const auto found = ino_of(fs, root_ino, "lost+found");
  REQUIRE(found);
  CHECK(names_in(fs, *found).size() == 4);  // the empty file and the empty directory have nothing to be kept for
  for (const auto& name : names_in(fs, *found)) {
    const auto attributes = need(fs.lookup(*found, name)).attributes;
    if (attributes.type != FileType::regular) continue;
    const auto handle = open_again(fs, attributes.ino, O_RDONLY);
    CHECK(need(read_at(fs, handle, object_bytes, 100)) == "some bytes");
    fs.release(handle);
  }
  need(fs.unmount());
}

TEST_CASE("repairs that are to delete orphans delete what a lost directory held") {
  const auto lost = LostDirectory::make();
  FakeClock clock;
  need(try_repair(lost.cluster->new_client(), clock, repair::Orphans::remove));
  CHECK(findings_of(*lost.cluster).empty());
  CHECK(object_names(*lost.cluster) == empty_volume);
}

TEST_CASE("an inode that does not say where it had a name is left, and named") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = make_file(*mount.file_system, root_ino, "file");
  volume.cluster().with_objects(
      [&](scripted::Objects& objects) { objects.metadata().at(format::inode_object(file)).xattrs.erase("parent"); });
  mount.client->crash();
  const auto report = collect(volume.cluster(), volume.clock());
  CHECK(told_of(report) == Names{format::inode_object(file)});
  CHECK(inode_object_of(volume.cluster(), file));
}

// ---- removed while something was made in it

/// A directory in which one client makes something, or to which it links or moves a file, and which another has just
/// removed; the first has not heard of it.
struct RemovedBeneath {
  RemovedBeneath() {
    if (how != How::makes) old = make_file(*maker.file_system, root_ino, "old");
    directory = make_dir(*maker.file_system, root_ino, "directory");
    make_file(*maker.file_system, directory, "file");
    need(maker->unlink(directory, "file"));
    collect(volume.cluster(), volume.clock());
    CHECK_FALSE(maker->lookup(directory, "new"));  // in the maker's memory there is a directory without that name
  }
  void remove() {
    need(remover->rmdir(root_ino, "directory"));
    need(remover->unmount());
  }
  bool is_there() { return inode_object_of(volume.cluster(), directory).has_value(); }
  Result<> make_in_it() {
    if (how == How::moves) return maker->rename(root_ino, "old", directory, "new", RenameMode::replace);
    const auto made =
        how == How::links ? maker->link(old, directory, "new") : maker->make_node({}, directory, "new", node_of(type));
    return made ? Result<>() : Result<>(std::unexpected(made.error()));
  }
  std::string naming() const { return how == How::moves ? "move entry in" : "insert entry"; }
  std::string undoing() const {
    return how == How::moves ? "drop back-pointer" : how == How::links ? "take back link" : "remove new inode";
  }
  /// The file that was there is whole, and no longer points to where it got no name.
  void remove_old() {
    if (how == How::makes) return;
    volume.clock().advance(minutes(2));
    CHECK(collect(volume.cluster(), volume.clock()).damaged.empty());
    auto mount = volume.mount();
    CHECK(need(mount->lookup(root_ino, "old")).attributes.nlink == 1);
    CHECK_FALSE(is_there());
    need(mount->unlink(root_ino, "old"));
    need(mount->unmount());
  }
  void expect_nothing_left() {
    remove_old();
    volume.clock().advance(minutes(2));
    CHECK(collect(volume.cluster(), volume.clock()).damaged.empty());
    collect(volume.cluster(), volume.clock());
    CHECK(object_names(volume.cluster()) == empty_volume);
    CHECK(findings_of(volume.cluster()).empty());
  }

  const FileType type = GENERATE(FileType::regular, FileType::directory, FileType::symlink);
  enum class How { makes, links, moves };
  const How how = type == FileType::regular ? GENERATE(How::makes, How::links, How::moves) : How::makes;
  TestVolume volume;
  Mount maker = volume.mount();
  Mount remover = volume.mount();
  Ino directory, old;
};

TEST_CASE("what a client made in a directory that is then removed goes with that client") {
  RemovedBeneath world;
  world.maker.client->set_hook(once_on(world.naming(), {Fault::Kind::not_applied_and_crash}));
  CHECK_FALSE(world.make_in_it());
  world.remove();
  world.expect_nothing_left();
}

TEST_CASE("a directory stays while somebody makes something in it") {
  RemovedBeneath world;
  const auto beside = before(world.naming(), [&] {
    world.remove();
    TestCollector collector(world.volume.cluster(), world.volume.clock());
    CHECK(collector.pass().open_elsewhere > 0);
    CHECK(world.is_there());
    collector.end();
  });
  const auto crash = once_on(world.undoing(), {Fault::Kind::not_applied_and_crash});
  world.maker.client->set_hook([&](const StepInfo& info) {
    beside(info);
    return crash(info);
  });
  CHECK(error_of(world.make_in_it()) == ErrorCode::stale);
  CHECK(world.maker.client->crashed());
  world.expect_nothing_left();
}

TEST_CASE(
    "a directory stays for a round if somebody dies between the look at what the dead have made and the question") {
  RemovedBeneath world;
  const unsigned call = GENERATE(2U, 3U, 4U);
  world.maker.client->set_hook(before(world.naming(), [&] {
    world.remove();
    TestCollector collector(world.volume.cluster(), world.volume.clock());
    unsigned calls = 0;
    collector.client().set_hook([&](const StepInfo& info) {
      if (info.kind == StepKind::notify && ++calls == call) world.maker.client->crash();
      return Fault{};
    });
    CHECK(collector.pass().damaged.empty());
    CHECK(calls > 2);
    collector.end();
  }));
  CHECK_FALSE(world.make_in_it());
  world.expect_nothing_left();
}

TEST_CASE("a directory stays as long as a client is there that does not know whether a name got into it") {
  RemovedBeneath world;
  bool sent = false;
  world.maker.client->set_hook([&](const StepInfo& info) {
    sent = sent || info.step == world.naming();
    const bool fails = sent && info.object == format::inode_object(world.directory);
    return fails ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  CHECK_FALSE(world.make_in_it());
  world.maker.client->set_hook(nullptr);
  world.remove();
  TestCollector collector(world.volume.cluster(), world.volume.clock(), minutes(5));
  CHECK(collector.pass().open_elsewhere > 0);
  CHECK(world.is_there());
  collector.end();
  need(world.maker->unmount());
  world.expect_nothing_left();
}

TEST_CASE("a client that was asked for a directory makes nothing in it from memory") {
  RemovedBeneath world;
  world.remove();
  TestCollector collector(world.volume.cluster(), world.volume.clock());
  collector.pass();
  CHECK_FALSE(world.is_there());
  collector.end();
  world.maker.client->set_hook(once_on(world.naming(), {Fault::Kind::not_applied_and_crash}));
  CHECK(error_of(world.make_in_it()) == ErrorCode::stale);
  world.maker.client->crash();
  world.expect_nothing_left();
}

}  // namespace
}  // namespace lccfs
