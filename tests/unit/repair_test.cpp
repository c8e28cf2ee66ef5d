// SPDX-License-Identifier: LGPL-2.1-or-later
// Each kind of damage by hand: found, repaired, gone, and nothing else changed; and repairs that are cut short.
#include "repair/repair.h"

#include <unistd.h>

#include <cstdlib>

#include "base/forwarding_store.h"
#include "instance/presence.h"
#include "repair/objects.h"
#include "repair/users.h"
#include "repair_damage.h"
#include "support/collecting.h"
#include "support/instances.h"
#include "support/newer_record.h"
#include "txn/map_blocks.h"
#include "txn/volume_txn.h"

namespace lccfs {
namespace {

using namespace test;
using repair::Orphans;
using scripted::Objects;

const Names none;  // what is there instead is to be shown

void spoil_nsub(Objects& objects, Ino ino) {
  objects.metadata().at(format::inode_object(ino)).xattrs["nsub"] = encode(format::NumberRecord{7});
}

/// What the collector does with /gone, and what a repairer leaves: no matter here.
bool may_always_change(const SmallVolume& v, const std::string& name) {
  return name == "Alloc" || name == "Super" || name == format::session_object(v.me) ||
         name == format::inode_object(v.gone) || name == format::data_object(v.gone, {0});
}

/// Objects that were not there before: of /lost+found, and in it.
bool is_new(const Content& before, const std::string& name) {
  return !before.metadata.contains(name) && !before.data.contains(name) && !name.starts_with("Session.");
}

/// Who repairs leaves nothing behind. The client that made the volume is the collector's.
Names instances_in(ScriptedCluster& cluster, const SmallVolume& v) {
  Names left;
  cluster.with_objects([&](Objects& objects) {
    for (const auto& [name, object] : objects.metadata()) {
      if (name.starts_with("Session.")) left.push_back(name);
      for (const auto& [key, value] : object.keys) {
        if (key.starts_with("s/")) left.push_back(key);
      }
    }
  });
  std::erase(left, format::session_object(v.me));
  std::erase(left, format::instance_key(v.me));
  return left;
}

/// Back-pointers to directories that have no name for the inode, of inodes that live: each would keep its inode for ever
/// once that directory is gone.
Names pointers_in_vain(ScriptedCluster& cluster) {
  Names pointers;
  cluster.with_objects([&](Objects& objects) {
    const auto has_name = [&](Ino parent, Ino ino) {
      const auto directory = objects.metadata().find(format::inode_object(parent));
      if (directory == objects.metadata().end()) return false;
      const auto prefix = format::reverse_key(ino, "");
      const auto key = directory->second.keys.lower_bound(prefix);
      return key != directory->second.keys.end() && key->first.starts_with(prefix);
    };
    for (const auto& [name, object] : objects.metadata()) {
      const auto parsed = format::parse_object_name(name);
      const auto* inode = parsed ? std::get_if<format::InodeName>(&*parsed) : nullptr;
      if (inode == nullptr) continue;
      for (const auto& [key, value] : object.keys) {
        const auto pointer = format::parse_back_pointer_key(key);
        if (pointer && !has_name(pointer->parent, inode->ino)) pointers.push_back(name + ": " + key);
      }
    }
  });
  return pointers;
}

TEST_CASE("every kind of damage is found, repaired and gone, and nothing else has changed") {
  for (const auto& damage : all_damage()) {
    INFO(damage.what);
    SmallVolume v;
    auto& cluster = v.volume.cluster();
    REQUIRE(findings_of(cluster) == none);
    const auto before = content_of(cluster);
    cluster.with_objects([&](Objects& objects) { damage.harm(v, objects); });
    const auto found = findings_of(cluster);
    INFO("found:\n" << text_of(found));
    CHECK(std::ranges::count(found, damage.finding(v)) >= 1);
    const auto told = need(try_repair(cluster.new_client(), v.volume.clock(), damage.orphans));
    INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
    const auto after = findings_of(cluster);
    CHECK((damage.left ? !after.empty() : after.empty()));
    CHECK(told.report.left == after.size());
    CHECK(told.left.size() == after.size());
    CHECK(told.report.repaired == told.repaired.size());
    if (!damage.left) CHECK(instances_in(cluster, v) == none);
    const auto changed = damage.changed ? damage.changed(v) : Names{};
    auto unexpected = differing(before, content_of(cluster));
    std::erase_if(unexpected, [&](const std::string& name) {
      return may_always_change(v, name) || is_new(before, name) || std::ranges::count(changed, name) == 1;
    });
    CHECK(unexpected == none);
    if (!damage.left) CHECK(pointers_in_vain(cluster) == none);
    const auto again = need(try_repair(cluster.new_client(), v.volume.clock(), damage.orphans));
    CHECK(again.report.repaired == 0);
    CHECK(again.report.left == told.report.left);
  }
}

/// All of it; or one of LCCFS_CRASH_STRIDE, as in the crash suites.
std::vector<Damage> damage_to_cut() {
  const char* text = std::getenv("LCCFS_CRASH_STRIDE");
  const std::size_t stride = text == nullptr ? 1 : std::max<std::size_t>(1, std::strtoul(text, nullptr, 10));
  std::vector<Damage> chosen;
  const auto all = all_damage();
  for (std::size_t i = 0; i < all.size(); i += stride) chosen.push_back(all[i]);
  return chosen;
}

TEST_CASE("a repair that is cut at any step, and run again, ends the same") {
  for (const auto& damage : damage_to_cut()) {
    INFO(damage.what);
    SmallVolume v;
    auto& damaged = v.volume.cluster();
    auto& clock = v.volume.clock();
    damaged.with_objects([&](Objects& objects) { damage.harm(v, objects); });
    const auto whole = damaged.clone();
    need(try_repair(whole->new_client(), clock, damage.orphans));
    const auto tree = tree_of(*whole, clock);
    const auto findings = findings_of(*whole);
    for (unsigned n = 0;; ++n) {
      INFO("step " << n);
      const auto cut = damaged.clone();
      const auto client = cut->new_client();
      const NthMutation fault(n, {Fault::Kind::not_applied_and_crash, ErrorCode::io});
      client->set_hook(fault);
      const auto first = try_repair(client, clock, damage.orphans);
      if (!fault.reached()) break;
      CHECK_FALSE(first.has_value());
      clock.advance(std::chrono::seconds(61));
      const auto second = need(try_repair(cut->new_client(), clock, damage.orphans));
      INFO("found again:\n" << text_of(second.repaired) << text_of(second.left));
      REQUIRE(findings_of(*cut) == findings);
      REQUIRE(tree_of(*cut, clock) == tree);
      if (!damage.left) CHECK(instances_in(*cut, v) == none);
    }
  }
}

/// /kept/file had a second name, /left/other, that was removed: the trace of it leads to the file, which points to the
/// directory of its first name with the xattr, and to the other with a key.
struct FileThatLostAName {
  explicit FileThatLostAName(bool kept_first) : volume(small_objects()) {
    auto mount = volume.mount();
    auto& fs = *mount.file_system;
    kept = make_dir(fs, root_ino, "kept");
    const auto left = make_dir(fs, root_ino, "left");
    file = make_file(fs, kept_first ? kept : left, kept_first ? "file" : "other");
    need(fs.link(file, kept_first ? left : kept, kept_first ? "other" : "file"));
    need(fs.unlink(left, "other"));
    need(fs.unmount());
  }

  TestVolume volume;
  Ino kept{}, file{};
};

TEST_CASE("a file whose back-pointer cannot be read keeps its name, wherever a repair is cut before a collector runs") {
  const bool by_xattr = GENERATE(true, false), is_entry_sound = GENERATE(true, false);
  INFO((by_xattr ? "the xattr" : "the key") << (is_entry_sound ? "" : ", and its entry"));
  FileThatLostAName v(by_xattr);
  auto& damaged = v.volume.cluster();
  auto& clock = v.volume.clock();
  const auto tree = tree_of(damaged, clock);
  damaged.with_objects([&](Objects& objects) {
    auto& inode = objects.metadata().at(format::inode_object(v.file));
    if (by_xattr) inode.xattrs["parent"] = "noise";
    if (!by_xattr) {
      REQUIRE(std::erase_if(inode.keys, [](const auto& key) { return key.first.starts_with("p/"); }) == 1);
      inode.keys["p/noise"] = format::marker_value;
    }
    for (auto& [key, value] : objects.metadata().at(format::inode_object(v.kept)).keys) {
      if (!is_entry_sound && key.starts_with("n/")) value = "noise";
    }
  });
  for (unsigned n = 0;; ++n) {
    INFO("step " << n);
    const auto cut = damaged.clone();
    const auto client = cut->new_client();
    const NthMutation fault(n, {Fault::Kind::not_applied_and_crash, ErrorCode::io});
    client->set_hook(fault);
    static_cast<void>(try_repair(client, clock));
    clock.advance(std::chrono::seconds(61));
    collect(*cut, clock);
    REQUIRE(inode_object_of(*cut, v.file));
    need(try_repair(cut->new_client(), clock));
    REQUIRE(findings_of(*cut) == none);
    REQUIRE(tree_of(*cut, clock) == tree);
    if (!fault.reached()) break;
  }
}

TEST_CASE("a repair succeeds though any one of its steps runs twice or loses its answer") {
  for (const auto& damage : damage_to_cut()) {
    INFO(damage.what);
    SmallVolume v;
    auto& damaged = v.volume.cluster();
    damaged.with_objects([&](Objects& objects) { damage.harm(v, objects); });
    for (const auto kind : {Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied}) {
      for (unsigned n = 0;; ++n) {
        INFO(describe(kind) << ", step " << n);
        const auto cluster = damaged.clone();
        const auto client = cluster->new_client();
        const NthMutation fault(n, {kind, ErrorCode::io});
        // A store that keeps its promises loses no answer on data: the collector gives such a pass up.
        client->set_hook(
            [fault](const StepInfo& info) { return info.kind == StepKind::apply ? fault(info) : Fault{}; });
        need(try_repair(client, v.volume.clock(), damage.orphans));
        if (!fault.reached()) break;
        REQUIRE(findings_of(*cluster).empty() != damage.left);
      }
    }
  }
}

TEST_CASE("one changed byte of any record is corrected, and the volume is as it was") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  std::vector<std::pair<std::string, std::string>> parts;  // object, xattr or key
  for (const auto& [name, object] : content_of(cluster).metadata) {
    for (const auto& [xattr, value] : object.xattrs) parts.emplace_back(name, xattr);
    for (const auto& [key, value] : object.keys) parts.emplace_back(name, key);
  }
  for (const auto& [name, part] : parts) {
    if (part.starts_with("u/")) continue;  // a user's bytes
    const auto value_in = [&, &name = name, &part = part](Objects& objects) -> Bytes& {
      auto& object = objects.metadata().at(name);
      return object.xattrs.contains(part) ? object.xattrs[part] : object.keys[part];
    };
    for (std::size_t at = 0;; at += 5) {
      INFO(name << " " << part << ", byte " << at);
      const auto damaged = cluster.clone();
      bool behind = false;
      damaged->with_objects([&](Objects& objects) {
        behind = at >= value_in(objects).size();
        if (!behind) value_in(objects)[at] = static_cast<char>(value_in(objects)[at] ^ 0x24);
      });
      if (behind) break;
      REQUIRE_FALSE(findings_of(*damaged).empty());
      const auto told = need(try_repair(damaged->new_client(), v.volume.clock()));
      INFO(text_of(told.repaired) << text_of(told.left));
      REQUIRE(findings_of(*damaged).empty());
      auto unexpected = differing(content_of(cluster), content_of(*damaged));
      std::erase_if(unexpected, [&](const std::string& object) { return may_always_change(v, object); });
      REQUIRE(unexpected == none);
    }
  }
}

TEST_CASE("keys of a large directory are read page by page, and one read tells whether there is any") {
  TestVolume volume(small_objects(), {.page_limit = 3});
  std::set<std::string> names;
  {
    auto mount = volume.mount();
    for (unsigned i = 0; i < 20; ++i) {
      make_file(*mount.file_system, root_ino, *names.insert("n" + std::to_string(i)).first);
    }
    need(mount->unmount());
  }
  const auto client = volume.new_client();
  unsigned reads = 0;
  client->set_hook([&](const StepInfo& step) {
    if (step.kind == StepKind::query && reads++ == 2) return Fault{Fault::Kind::fail, ErrorCode::timed_out};
    return Fault{};
  });
  repair::Objects objects(*client);
  CHECK(need(objects.has_key("Inode.1", "n/")));
  CHECK_FALSE(need(objects.has_key("Inode.1", "p/")));
  CHECK(reads == 2);
  need(objects.for_each_key("Inode.1", "n/", [&](const std::string& key, const Bytes&) -> Result<> {
    CHECK(names.erase(format::parse_entry_key(key)->name) == 1);
    return {};
  }));
  CHECK(names.empty());
  CHECK(reads == 2 + 1 + 7);
}

TEST_CASE("a volume in which nothing is found is not touched") {
  SmallVolume v;
  const auto client = v.volume.new_client();
  const auto told = need(try_repair(client, v.volume.clock()));
  CHECK(told.report.check.directories == 3);
  CHECK(told.report.repaired + told.report.left == 0);
  CHECK(client->counts().applies == 0);
}

TEST_CASE("what another client has changed before its repair is told once, as left") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  const auto nsub = v.objects_of(format::inode_object(v.d)).xattrs.at("nsub");
  cluster.with_objects([&](Objects& objects) { spoil_nsub(objects, v.d); });
  const auto client = cluster.new_client();
  client->set_hook(before("make session", [&] {
    cluster.with_objects(
        [&](Objects& objects) { objects.metadata().at(format::inode_object(v.d)).xattrs["nsub"] = nsub; });
  }));
  const auto told = need(try_repair(client, v.volume.clock()));
  CHECK(told.repaired == none);
  CHECK(told.left.size() == 1);
  CHECK(told.report.repaired == 0);
  CHECK(told.report.left == 1);
  CHECK(findings_of(cluster) == none);
}

TEST_CASE("nothing is repaired while somebody is there, unless that is wanted") {
  SmallVolume v;
  auto mount = v.volume.mount();
  v.volume.cluster().with_objects([&](Objects& objects) { spoil_nsub(objects, v.d); });
  const auto refused = try_repair(v.volume.new_client(), v.volume.clock());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::busy);
  CHECK(findings_of(v.volume.cluster()).size() == 1);
  repair::RepairOptions options;
  options.though_in_use = true;
  need(repair::repair_volume(v.volume.new_client(), v.volume.clock(), options));
  CHECK(findings_of(v.volume.cluster()) == none);
  CHECK(make_file(*mount.file_system, root_ino, "still works").value != 0);
  need(mount->unmount());
}

/// The addresses say that nobody is of this host.
class StoreOfOtherHosts final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  bool may_be_of_this_host(const Bytes&) const override { return false; }
};

TEST_CASE("a client with another host's address is there as long as it watches, whatever process this host lacks") {
  SmallVolume v;
  auto mount = v.volume.mount();
  v.volume.cluster().with_objects([&](Objects& objects) {
    auto& value = std::prev(objects.metadata().at("Super").keys.upper_bound("s/~"))->second;
    auto record = need(format::decode<format::InstanceRecord>(value));
    record.host = host_name();
    record.pid = static_cast<std::uint64_t>(::getpid());
    record.process = system_processes().own();
    record.process->start_ticks -= 1;  // of whoever had this number before
    value = format::encode(record);
  });
  const auto client = v.volume.new_client();
  const auto is_there = [](ObjectStore& store) { return need(repair::users_of(store)).back().watches; };
  StoreOfOtherHosts elsewhere(*client);
  CHECK(is_there(elsewhere));
  CHECK_FALSE(is_there(*client));
}

TEST_CASE("a client whose record is damaged or gone is there as long as it watches, and is not taken for ended") {
  SmallVolume v;
  auto mount = v.volume.mount();
  const bool gone = GENERATE(true, false);
  const bool silent = GENERATE(true, false);
  mount.client->set_deaf(silent);
  const auto spoil = [&](Objects& objects) {
    auto& records = objects.metadata().at("Super").keys;
    const auto last = std::prev(records.upper_bound("s/~"));
    REQUIRE(last->first != format::instance_key(v.me));
    if (gone) records.erase(last);
    if (!gone) last->second = "noise";
  };
  v.volume.cluster().with_objects(spoil);
  const auto before = content_of(v.volume.cluster());
  const auto refused = try_repair(v.volume.new_client(), v.volume.clock());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::busy);
  CHECK(content_of(v.volume.cluster()).metadata == before.metadata);
  repair::RepairOptions options;
  options.though_in_use = true;
  const auto forced = repair::repair_volume(v.volume.new_client(), v.volume.clock(), options);
  CHECK(forced.has_value() == gone);  // no collector works beside a record that cannot be read
  CHECK(findings_of(v.volume.cluster()) != none);
  mount.client->crash();
  mount.file_system.reset();
  need(try_repair(v.volume.new_client(), v.volume.clock()));
  CHECK(findings_of(v.volume.cluster()) == none);
}

TEST_CASE("a client whose record is damaged or gone is taken for ended after a minute without it, not after one look") {
  SmallVolume v;
  auto& clock = v.volume.clock();
  auto& cluster = v.volume.cluster();
  auto mount = v.volume.mount();
  const bool gone = GENERATE(true, false);
  const auto spoil = [&](Objects& objects) {
    auto& records = objects.metadata().at("Super").keys;
    const auto last = std::prev(records.upper_bound("s/~"));
    const auto session = format::session_object(*format::parse_instance_key(last->first));
    if (gone) records.erase(last);
    if (!gone) last->second = "noise";
    return session;
  };
  std::string session;
  cluster.with_objects([&](Objects& objects) { session = spoil(objects); });
  mount.client->set_deaf(true);  // its host stands still
  const auto lost = mount.client->lapse_watches([](const std::string&) { return true; });
  const auto before = content_of(cluster);
  std::unique_ptr<Watch> again;
  const auto back_at = clock.elapsed() + std::chrono::seconds(40);
  const auto client = cluster.new_client();
  client->set_hook([&](const StepInfo& info) {
    const bool is_back = info.kind == StepKind::notify && info.object == session && clock.elapsed() >= back_at;
    if (is_back && !again) again = need(mount.client->watch(session, std::make_shared<DeafHandler>()));
    return Fault{};
  });
  const auto refused = try_repair(client, clock);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::busy);
  CHECK(content_of(cluster).metadata == before.metadata);
  again.reset();
  mount.client->crash();
  mount.file_system.reset();
  cluster.with_objects(
      [&](Objects& objects) { objects.metadata().at("Super").keys.erase(format::instance_key(v.me)); });
  const auto began = clock.elapsed();
  need(try_repair(cluster.new_client(), clock));
  const auto took = clock.elapsed() - began;
  CHECK(took >= std::chrono::seconds(60));
  CHECK(took < std::chrono::seconds(120));  // both of them side by side
  CHECK(findings_of(cluster) == none);
}

TEST_CASE("a client without a record is taken for ended, however long one before it that is there keeps silent") {
  SmallVolume v;
  auto& clock = v.volume.clock();
  auto& cluster = v.volume.cluster();
  const auto silent = v.volume.mount(), gone = v.volume.mount();
  silent.client->set_deaf(true);
  gone.client->crash();
  std::vector<std::string> sessions;
  cluster.with_objects([&](Objects& objects) {
    std::erase_if(objects.metadata().at("Super").keys, [&](const auto& record) {
      const auto id = format::parse_instance_key(record.first);
      if (!id || *id == v.me) return false;
      sessions.push_back(format::session_object(*id));
      return true;
    });
  });
  REQUIRE(sessions.size() == 2);
  const auto client = cluster.new_client();
  client->set_hook([&](const StepInfo& info) {
    if (info.kind == StepKind::notify && info.object == sessions.front()) clock.advance(std::chrono::seconds(11));
    return Fault{};
  });
  repair::RepairOptions options;
  options.though_in_use = true;
  need(repair::repair_volume(client, clock, options));
  CHECK(findings_of(cluster) == Names{"stray session: " + sessions.front()});
}

TEST_CASE("more findings than there is room for are repaired in the same order, one check after the other") {
  SmallVolume v;
  auto mount = v.volume.mount();
  for (unsigned i = 0; i < 20; ++i) make_file(*mount.file_system, v.sub, "n" + std::to_string(i));
  need(mount->unmount());
  auto& cluster = v.volume.cluster();
  const auto tree = tree_of(cluster, v.volume.clock());
  cluster.with_objects([&](Objects& objects) {
    std::erase_if(objects.metadata().at(format::inode_object(v.sub)).keys,
                  [](const auto& key_and_value) { return key_and_value.first.starts_with("n/"); });
  });
  CHECK(findings_of(cluster).size() == 42);  // a stray reverse key and an orphan each
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock(), Orphans::keep, 6));
  CHECK(told.report.repaired < 42);
  CHECK(findings_of(cluster) == none);
  CHECK(tree_of(cluster, v.volume.clock()) == tree);
}

TEST_CASE("what was there when the store lost the root is kept, whatever becomes of other orphans") {
  const bool another_too = GENERATE(true, false);
  std::vector<std::vector<std::string>> trees;
  for (const auto orphans : {Orphans::keep, Orphans::remove}) {
    SmallVolume v;
    v.volume.cluster().with_objects([&](Objects& objects) {
      objects.metadata().erase(format::inode_object(root_ino));
      if (another_too) objects.metadata().erase(format::inode_object(v.d));
    });
    need(try_repair(v.volume.new_client(), v.volume.clock(), orphans));
    CHECK(findings_of(v.volume.cluster()) == none);
    trees.push_back(tree_of(v.volume.cluster(), v.volume.clock()));
  }
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(trees.back(), [&](const auto& line) { return line.contains(name); });
  };
  CHECK(has("/deep "));
  CHECK(trees.front() == trees.back());
}

TEST_CASE("orphans that are younger than a root that was made anew are deleted if nobody wants them") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([](Objects& objects) { objects.metadata().erase("Inode.1"); });
  need(try_repair(v.volume.new_client(), v.volume.clock()));
  Ino made;
  {
    auto mount = v.volume.mount();
    made = need(mount->make_node({}, root_ino, "made", {FileType::symlink, 0, 0, "target"})).attributes.ino;
    need(mount->unmount());
  }
  cluster.with_objects([&](Objects& objects) {
    auto& root = objects.metadata().at("Inode.1").keys;
    root.erase(v.key("made"));
    root.erase(format::reverse_key(made, "made"));
  });
  need(try_repair(v.volume.new_client(), v.volume.clock(), Orphans::remove));
  CHECK(findings_of(cluster) == none);
  CHECK_FALSE(content_of(cluster).metadata.contains(format::inode_object(made)));
}

TEST_CASE("an object of another program keeps its name in /lost+found, but for what no file's name can hold") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([](Objects& objects) { objects.write("a/b\\c\x1b\xff", 0, std::string("theirs")); });
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock()));
  CHECK(told.report.repaired == 1);
  unsigned found = 0;
  cluster.with_objects([&](Objects& objects) {
    for (const auto& [name, object] : objects.metadata()) {
      for (const auto& [key, value] : object.keys) {
        const auto entry = format::parse_entry_key(key);
        if (entry && entry->name == "a\\x2fb\\x5cc\x1b\xff") ++found;
      }
    }
  });
  CHECK(found == 1);
}

TEST_CASE(
    "an object of another program that the store takes no call on, or cannot read, keeps no other from its repair") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  const std::string theirs = "Inode/12";
  cluster.with_objects([&](Objects& objects) {
    objects.write(theirs, 0, std::string("theirs"));
    spoil_nsub(objects, v.d);
  });
  const auto code = GENERATE(ErrorCode::invalid, ErrorCode::corrupt, ErrorCode::io);
  const bool is_data = GENERATE(false, true);
  const auto client = cluster.new_client();
  client->set_hook([&](const StepInfo& info) {
    const bool fails = info.object == theirs && (!is_data || info.kind != StepKind::query);
    return fails ? Fault{Fault::Kind::fail, code} : Fault{};
  });
  const auto told = need(try_repair(client, v.volume.clock()));
  CHECK(told.repaired.size() == 1);
  const std::string why =
      code == ErrorCode::invalid ? "no program can read or remove an object of that name" : "the store cannot read it";
  CHECK(told.left == Names{"unknown object: " + theirs + ": " + why});
}

TEST_CASE("an object that is named like the directory itself or the one above is a file in /lost+found") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([](Objects& objects) {
    objects.write(".", 0, std::string("one"));
    objects.write("..", 0, std::string("two"));
  });
  need(try_repair(cluster.new_client(), v.volume.clock()));
  CHECK(findings_of(cluster) == none);
  auto mount = v.volume.mount();
  const auto found = need(mount->lookup(root_ino, "lost+found")).attributes.ino;
  const auto content = [&](const std::string& name) {
    return need(content_of_file(*mount.file_system, need(mount->lookup(found, name)).attributes.ino));
  };
  CHECK(content("\\x2e") == "one");
  CHECK(content("\\x2e.") == "two");
}

TEST_CASE("lines about what is in /lost+found have the name that this directory could get") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  {
    auto mount = v.volume.mount();
    make_file(*mount.file_system, root_ino, "lost+found");
    need(mount->unmount());
  }
  cluster.with_objects([&](Objects& objects) {
    auto& root = objects.metadata().at("Inode.1").keys;
    root.erase(v.key("link"));
    root.erase(format::reverse_key(v.link, "link"));
    objects.write("theirs", 0, std::string("bytes"));
  });
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock()));
  INFO(text_of(told.repaired));
  const auto line_with = [&](const std::string& text) {
    return std::ranges::any_of(told.repaired, [&](const auto& line) { return line.ends_with(text); });
  };
  CHECK(line_with("is now /lost+found-2/inode-" + std::to_string(v.link.value)));
  CHECK(line_with("moved to /lost+found-2/theirs"));
}

TEST_CASE("a repair that was cut has kept an object's bytes, and the next keeps them once, under whatever name") {
  SmallVolume v;
  {
    auto mount = v.volume.mount();
    make_file(*mount.file_system, make_dir(*mount.file_system, root_ino, "lost+found"), "theirs");
    need(mount->unmount());
  }
  v.volume.cluster().with_objects([](Objects& objects) { objects.write("theirs", 0, std::string("bytes")); });
  for (unsigned n = 0;; ++n) {
    INFO("step " << n);
    const auto cut = v.volume.cluster().clone();
    const auto client = cut->new_client();
    const NthMutation fault(n, {Fault::Kind::not_applied_and_crash, ErrorCode::io});
    client->set_hook(fault);
    static_cast<void>(try_repair(client, v.volume.clock()));
    if (!fault.reached()) break;
    v.volume.clock().advance(std::chrono::seconds(61));
    need(try_repair(cut->new_client(), v.volume.clock()));
    const auto tree = tree_of(*cut, v.volume.clock());
    CHECK(std::ranges::count_if(tree, [](const auto& line) { return line.contains("/theirs"); }) == 2);
  }
}

TEST_CASE("what an unreadable entry may have named is kept, though nobody wants orphans") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([&](Objects& objects) {
    auto& root = objects.metadata().at("Inode.1").keys;
    root.erase(v.key("fifo"));
    root.erase(format::reverse_key(v.fifo, "fifo"));
    auto& fifo = objects.metadata().at(format::inode_object(v.fifo));
    fifo.xattrs["parent"] = encode(format::BackPointerRecord{v.d, {v.me, 3}});
    auto& directory = objects.metadata().at(format::inode_object(v.d)).keys;
    directory[v.key("file")] = "noise of some length";
    directory[format::reverse_key(v.fifo, "file")] = format::marker_value;
  });
  const bool lost_another_name = GENERATE(false, true);
  if (lost_another_name) {
    cluster.with_objects([&](Objects& objects) {
      const auto key = format::detached_key(v.file, {v.me, 900});
      objects.metadata().at(format::inode_object(v.d)).keys[key] = format::marker_value;
    });
  }
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock(), Orphans::remove));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  CHECK(findings_of(cluster) == none);
  const auto tree = tree_of(cluster, v.volume.clock());
  for (const auto ino : {v.file, v.fifo}) {
    const auto name = "/inode-" + std::to_string(ino.value) + "-file ";
    CHECK(std::ranges::count_if(tree, [&](const auto& line) { return line.contains(name); }) == 1);
  }
}

TEST_CASE("what a repair that was cut was about to name in /lost+found is named there, though nobody wants orphans") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  Ino lost_and_found;
  {
    auto mount = v.volume.mount();
    lost_and_found = make_dir(*mount.file_system, root_ino, "lost+found");
    need(mount->unmount());
  }
  cluster.with_objects([&](Objects& objects) {
    auto& root = objects.metadata().at("Inode.1").keys;
    root.erase(v.key("fifo"));
    root.erase(format::reverse_key(v.fifo, "fifo"));
    auto& fifo = objects.metadata().at(format::inode_object(v.fifo));
    fifo.xattrs["parent"] = encode(format::BackPointerRecord{lost_and_found, {v.me, 3}});
  });
  need(try_repair(cluster.new_client(), v.volume.clock(), Orphans::remove));
  CHECK(findings_of(cluster) == none);
  const auto name = "/lost+found/inode-" + std::to_string(v.fifo.value) + " ";
  const auto tree = tree_of(cluster, v.volume.clock());
  CHECK(std::ranges::count_if(tree, [&](const auto& line) { return line.contains(name); }) == 1);
}

TEST_CASE("findings that cannot be repaired take no room from those that can") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  const Bytes record = record_of_newer_version();
  cluster.with_objects([&](Objects& objects) {
    for (const Ino ino : {v.file, v.deep, v.plain}) {
      objects.metadata().at(format::inode_object(ino)).xattrs["mtime"] = record;
    }
    spoil_nsub(objects, v.d);
  });
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock(), Orphans::keep, 2));
  CHECK(told.report.repaired == 1);
  CHECK(told.report.left == 3);
  CHECK(findings_of(cluster).size() == 3);
}

TEST_CASE("findings that have only waited for Super's own record take their turn once it can be read") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([&](Objects& objects) {
    auto& record = objects.metadata().at(format::super_object).xattrs["super"];
    record[9] = static_cast<char>(record[9] ^ 4);
    objects.metadata().erase(format::alloc_object);
    for (const Ino ino : {v.file, v.deep}) objects.metadata().at(format::inode_object(ino)).xattrs.erase("atime");
  });
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock(), Orphans::keep, 2));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  CHECK(told.report.left == 0);
  CHECK(findings_of(cluster) == none);
}

TEST_CASE("what lies past the end of a file is kept in /lost+found, at its place") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects(
      [&](Objects& objects) { objects.write(format::data_object(v.file, {5}), 0, std::string("tail")); });
  need(try_repair(cluster.new_client(), v.volume.clock()));
  CHECK(findings_of(cluster).empty());
  auto mount = v.volume.mount();
  const auto found = need(mount->lookup(root_ino, "lost+found")).attributes.ino;
  const auto name = "data-of-inode-" + std::to_string(v.file.value) + "-past-its-end-5";
  const auto kept = need(content_of_file(*mount.file_system, need(mount->lookup(found, name)).attributes.ino));
  CHECK(kept.size() % 5 == 4);
  CHECK(kept.ends_with(std::string("\0tail", 5)));
}

TEST_CASE("data at a place that no file has are left where they are, and get no block of the map") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  const ObjectIndex beyond{std::uint64_t{1} << 48};
  cluster.with_objects([&](Objects& objects) {
    objects.metadata().at(format::inode_object(v.file)).xattrs["lease"] = encode(format::NumberRecord{v.me.value});
    objects.write(format::data_object(v.file, beyond), 0, std::string("tail"));
  });
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock()));
  CHECK(told.repaired == none);
  CHECK(std::ranges::count(told.left,
                           "unmapped data: " + format::data_object(v.file, beyond) + ": no file is that large") == 1);
}

TEST_CASE("a volume with features of a newer version is refused, and left as it is") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([&](Objects& objects) {
    auto& super = objects.metadata().at(format::super_object);
    auto record = need(format::decode<format::SuperRecord>(super.xattrs["super"]));
    record.ro_compat = 1;
    super.xattrs["super"] = encode(record);
    super.keys["z/new"] = "a key of that version";
  });
  const auto client = v.volume.new_client();
  const auto refused = try_repair(client, v.volume.clock());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::unsupported);
  CHECK(client->counts().applies == 0);
  CHECK_FALSE(check::check_volume(*v.volume.new_client()).has_value());
}

TEST_CASE("an Alloc that is made anew hands out no number of an instance of which only a token is left") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  constexpr InstanceId gone{9'000'000};
  cluster.with_objects([&](Objects& objects) {
    objects.metadata().at(format::inode_object(v.file)).keys[format::step_number_key(gone)] =
        format::step_number_value(5);
    SECTION("it is gone") { objects.metadata().erase(format::alloc_object); }
    SECTION("its counter is noise") { objects.metadata().at(format::alloc_object).xattrs["next"] = "noise"; }
  });
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock()));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  CHECK(findings_of(cluster) == none);
  const auto next = v.objects_of(format::alloc_object).xattrs.at("next");
  CHECK(need(format::decode_next_number(next)) > gone.value);
}

TEST_CASE("what a feature of a newer version has put there, and a mount may ignore, is found and not removed") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([&](Objects& objects) {
    auto& super = objects.metadata().at(format::super_object);
    auto record = need(format::decode<format::SuperRecord>(super.xattrs["super"]));
    record.compat = 1;
    super.xattrs["super"] = encode(record);
    objects.metadata().at(format::inode_object(v.file)).xattrs["new"] = "an xattr of that version";
  });
  const auto client = v.volume.new_client();
  const auto refused = try_repair(client, v.volume.clock());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::unsupported);
  CHECK(refused.error().context.find("compat 0x1") != std::string::npos);
  CHECK(client->counts().applies == 0);
  CHECK(findings_of(cluster) == Names{"unknown part: " + format::inode_object(v.file)});
}

/// As a feature may that a mount may ignore: parts of Super, Alloc and a queue. Its bit is in Super's own record, to
/// which `harm` is done.
void add_parts_of_a_feature(SmallVolume& v, const std::function<void(Bytes& record)>& harm) {
  v.volume.cluster().with_objects([&](Objects& objects) {
    auto& stored = objects.metadata().at(format::super_object).xattrs["super"];
    auto record = need(format::decode<format::SuperRecord>(stored));
    record.compat = 1;
    stored = encode(record);
    harm(stored);
    for (const auto& name : {std::string("Super"), std::string("Alloc"), format::session_object(v.me)}) {
      objects.metadata().at(name).keys["z/new"] = "a key of that version";
      objects.metadata().at(name).xattrs["new"] = "an xattr of that version";
    }
    objects.metadata().at(format::session_object(v.me)).keys[format::queue_key(900)] = "an item of that version";
  });
}

TEST_CASE("what a feature of a newer version has put there stays, though Super's own record is to be corrected first") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  const auto one_byte = [](Bytes& record) { record[9] = static_cast<char>(record[9] ^ 4); };
  add_parts_of_a_feature(v, one_byte);
  const auto damaged = content_of(cluster);
  const auto client = v.volume.new_client();
  const auto refused = try_repair(client, v.volume.clock());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::unsupported);
  CHECK(client->counts().applies == 1);
  auto corrected = content_of(cluster);
  CHECK(differing(damaged, corrected) == Names{"Super"});
  one_byte(corrected.metadata["Super"].xattrs["super"]);
  CHECK(differing(damaged, corrected) == none);
}

TEST_CASE("nothing is removed while Super's own record cannot be read: it would say which features there are") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  add_parts_of_a_feature(v, [](Bytes& record) { record = "noise of some length"; });
  cluster.with_objects([](Objects& objects) {
    objects.metadata().at("Super").keys[format::instance_key(InstanceId{9})] = "noise of some length";
  });
  const auto damaged = content_of(cluster);
  const auto began = v.volume.clock().elapsed();
  const auto told = need(try_repair(v.volume.new_client(), v.volume.clock()));
  INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
  CHECK(told.repaired == none);
  CHECK(told.left.size() == 9);
  CHECK(told.report.left == 9);
  CHECK(std::ranges::count_if(told.left, [](const auto& line) { return line.ends_with("which features there are"); }) ==
        8);
  CHECK(differing(damaged, content_of(cluster)) == none);
  CHECK(v.volume.clock().elapsed() - began < std::chrono::seconds(60));  // it would be in vain
}

TEST_CASE("a client without a record is looked for a minute once Super's own record can be read") {
  SmallVolume v;
  auto& clock = v.volume.clock();
  auto& cluster = v.volume.cluster();
  cluster.with_objects([&](Objects& objects) {
    auto& super = objects.metadata().at(format::super_object);
    super.xattrs["super"][9] = static_cast<char>(super.xattrs["super"][9] ^ 4);
    super.keys.erase(format::instance_key(v.me));
    spoil_nsub(objects, v.d);
  });
  const auto client = cluster.new_client();
  std::vector<std::chrono::nanoseconds> steps;
  client->set_hook([&](const StepInfo& info) {
    if (info.kind == StepKind::apply) steps.push_back(clock.elapsed());
    return Fault{};
  });
  const auto began = clock.elapsed();
  need(try_repair(client, clock));
  CHECK(findings_of(cluster) == none);
  REQUIRE(steps.size() > 1);
  CHECK(steps[0] == began);
  CHECK(steps[1] - began >= std::chrono::seconds(60));
}

TEST_CASE("nothing is repaired where an object could not be read, though it can be soon after") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects(
      [&](Objects& objects) { objects.metadata().at(format::inode_object(v.file)).xattrs.erase("atime"); });
  const auto code = GENERATE(ErrorCode::io, ErrorCode::corrupt);
  const auto client = v.volume.new_client();
  unsigned reads = 0;
  client->set_hook([&](const StepInfo& info) {
    const bool fails = info.object == format::inode_object(root_ino) && reads++ == 0;
    return fails ? Fault{Fault::Kind::fail, code} : Fault{};
  });
  std::multiset<std::string> left;
  repair::RepairOptions options;
  options.on_repair = [&left](const check::Finding& finding, const repair::Repair& what) {
    CHECK_FALSE(what.done);
    left.insert(std::string(describe(finding.kind)) + ": " + finding.object);
  };
  const auto refused = repair::repair_volume(client, v.volume.clock(), options);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::io);
  CHECK(client->counts().applies == 0);
  CHECK(left == std::multiset<std::string>{"unreadable: " + format::inode_object(root_ino),
                                           "missing part: " + format::inode_object(v.file)});
  CHECK(findings_of(cluster).size() == 1);
}

TEST_CASE("a repair that fails in the midst does not end as if all were well") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([&](Objects& objects) { objects.write("theirs", 0, std::string("bytes")); });
  const auto client = v.volume.new_client();
  client->set_hook([](const StepInfo& info) {
    return info.kind == StepKind::write ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  CHECK_FALSE(try_repair(client, v.volume.clock()).has_value());
  CHECK(instances_in(cluster, v).size() == 2);  // its record and its session, whose range leads to the half-made file
  v.volume.clock().advance(std::chrono::minutes(2));
  need(try_repair(v.volume.new_client(), v.volume.clock()));
  CHECK(findings_of(cluster) == none);
  CHECK(instances_in(cluster, v) == none);
}

TEST_CASE("a directory of a client that is gone is adopted when the one above is lost") {
  TestVolume volume;
  FileSystemOptions options;
  options.lease_after_changes = 4;
  options.names_behind = GENERATE(false, true);
  Ino above, file;
  {
    Mount mount = volume.mount(options);
    above = make_dir(*mount.file_system, root_ino, "d");
    file = make_file(*mount.file_system, make_dir(*mount.file_system, above, "sub"), "f");
    need(mount->unmount());
  }
  volume.cluster().with_objects(
      [&](scripted::Objects& objects) { objects.metadata().erase(format::inode_object(above)); });
  for (unsigned i = 0; i < 2; ++i) need(try_repair(volume.new_client(), volume.clock()));
  for (unsigned pass = 0; pass < 4; ++pass) collect(volume.cluster(), volume.clock());
  CHECK(inode_object_of(volume.cluster(), file));
}

TEST_CASE("every kind of damage is repaired though a client that is gone has left its leases of all directories") {
  for (const auto& damage : all_damage()) {
    if (damage.left) continue;
    INFO(damage.what);
    SmallVolume v;
    auto& cluster = v.volume.cluster();
    const auto lease = encode(format::DirectoryLeaseRecord{{v.me, 5}});
    cluster.with_objects([&](Objects& objects) {
      for (const Ino directory : {root_ino, v.d, v.sub}) {
        objects.metadata().at(format::inode_object(directory)).xattrs["lease"] = lease;
      }
      damage.harm(v, objects);
    });
    const auto told = need(try_repair(cluster.new_client(), v.volume.clock(), damage.orphans));
    INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
    CHECK(findings_of(cluster) == none);
  }
}

/// A range that leads to all inodes: the collector counts the names of each.
void lead_to_all(SmallVolume& v) {
  const format::QueueItem range{format::QueueItem::Kind::range, Ino{2}, Ino{200}, {}};
  need(v.volume.new_client()->apply(txn::append_queue_items(v.me, {{901, range}})));
}

TEST_CASE("no name is lost in a repair though a client that is gone has left leases, and a range for every inode") {
  for (const auto& damage : all_damage()) {
    if (damage.left) continue;
    INFO(damage.what);
    SmallVolume v;
    auto& clock = v.volume.clock();
    lead_to_all(v);
    auto& leased = v.volume.cluster();
    leased.with_objects([&](Objects& objects) { damage.harm(v, objects); });
    const auto free = leased.clone();
    const auto lease = encode(format::DirectoryLeaseRecord{{v.me, 5}});
    leased.with_objects([&](Objects& objects) {
      for (const Ino directory : {root_ino, v.d, v.sub}) {
        const auto found = objects.metadata().find(format::inode_object(directory));
        if (found != objects.metadata().end()) found->second.xattrs.emplace("lease", lease);
      }
    });
    need(try_repair(free->new_client(), clock, damage.orphans));
    const auto told = need(try_repair(leased.new_client(), clock, damage.orphans));
    INFO("repaired:\n" << text_of(told.repaired) << "left:\n" << text_of(told.left));
    CHECK(findings_of(leased) == none);
    CHECK(tree_of(leased, clock) == tree_of(*free, clock));
  }
}

TEST_CASE("a directory does not point back to where it had a further name") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  const bool points_there_first = GENERATE(false, true);
  cluster.with_objects([&](Objects& objects) {
    auto& root = objects.metadata().at(format::inode_object(root_ino));
    root.keys[v.key("further")] = v.entry(v.sub, FileType::directory);
    root.keys[format::reverse_key(v.sub, "further")] = format::marker_value;
    auto& inode = objects.metadata().at(format::inode_object(v.sub));
    const format::BackPointerRecord pointer{root_ino, {v.me, 7}};
    if (!points_there_first) {
      inode.keys[format::back_pointer_key(pointer.parent, pointer.token)] = format::marker_value;
    } else {
      const auto first = need(format::decode<format::BackPointerRecord>(inode.xattrs.at("parent")));
      inode.keys[format::back_pointer_key(first.parent, first.token)] = format::marker_value;
      inode.xattrs["parent"] = encode(pointer);
    }
  });
  need(try_repair(cluster.new_client(), v.volume.clock()));
  CHECK(findings_of(cluster) == none);
  CHECK(pointers_in_vain(cluster) == none);
}

/// What the store lost, beside a range that leads to all inodes.
struct LostDirectory {
  const char* what;
  std::function<void(SmallVolume&, Objects&)> harm;
  bool left = false;
};

const std::vector<LostDirectory>& lost_directories() {
  static const auto lose = [](Objects& objects, Ino ino) { objects.metadata().erase(format::inode_object(ino)); };
  static const auto spoil_plain = [](const SmallVolume& v, Objects& objects) {
    objects.metadata().at(format::inode_object(v.plain)).xattrs["size"] = "noise";
  };
  static const std::vector<LostDirectory> all = {
      {"the root", [](SmallVolume&, Objects& objects) { lose(objects, root_ino); }},
      {"a directory", [](SmallVolume& v, Objects& objects) { lose(objects, v.d); }},
      {"the root and a directory",
       [](SmallVolume& v, Objects& objects) {
         lose(objects, root_ino);
         lose(objects, v.d);
       }},
      {"the root, beside a file that keeps the range",
       [](SmallVolume& v, Objects& objects) {
         lose(objects, root_ino);
         spoil_plain(v, objects);
       },
       true},
      {"a directory, beside a file that keeps the range",
       [](SmallVolume& v, Objects& objects) {
         lose(objects, v.d);
         spoil_plain(v, objects);
       },
       true},
  };
  return all;
}

TEST_CASE("what was in a lost directory is kept though a client that is gone has left a range for all of it") {
  for (const auto& lost : lost_directories()) {
    INFO(lost.what);
    std::vector<std::vector<std::string>> trees;
    for (const bool queued : {false, true}) {
      SmallVolume v;
      auto& cluster = v.volume.cluster();
      if (queued) lead_to_all(v);
      cluster.with_objects([&](Objects& objects) { lost.harm(v, objects); });
      need(try_repair(cluster.new_client(), v.volume.clock()));
      for (unsigned pass = 0; pass < 4; ++pass) collect(cluster, v.volume.clock());
      CHECK(findings_of(cluster).size() == (lost.left ? 1 : 0));
      CHECK(inode_object_of(cluster, v.file));
      CHECK(inode_object_of(cluster, v.deep));
      trees.push_back(tree_of(cluster, v.volume.clock()));
    }
    CHECK(trees.front() == trees.back());
  }
}

TEST_CASE("what was in a lost directory is kept, wherever its repair is cut before a collector runs") {
  for (const auto& lost : lost_directories()) {
    INFO(lost.what);
    SmallVolume v;
    lead_to_all(v);
    auto& damaged = v.volume.cluster();
    auto& clock = v.volume.clock();
    damaged.with_objects([&](Objects& objects) { lost.harm(v, objects); });
    const auto whole = damaged.clone();
    need(try_repair(whole->new_client(), clock));
    const auto tree = tree_of(*whole, clock);
    for (unsigned n = 0;; ++n) {
      INFO("step " << n);
      const auto cut = damaged.clone();
      const auto client = cut->new_client();
      const NthStepOfRepair fault(n, {Fault::Kind::not_applied_and_crash, ErrorCode::io});
      client->set_hook(fault);
      static_cast<void>(try_repair(client, clock));
      if (!fault.reached()) break;
      clock.advance(std::chrono::seconds(61));
      for (unsigned pass = 0; pass < 2; ++pass) collect(*cut, clock);
      need(try_repair(cut->new_client(), clock));
      REQUIRE(tree_of(*cut, clock) == tree);
    }
  }
}

TEST_CASE("what a client that has ended had moved into a root before that was lost is kept, too") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  const auto session = v.objects_of(format::session_object(v.me));
  const auto record = v.objects_of("Super").keys.at(format::instance_key(v.me));
  {
    const auto mount = v.volume.mount();
    need(mount->rename(v.d, "file", root_ino, "file", RenameMode::replace));
    need(mount->unmount());
  }
  collect(cluster, v.volume.clock());
  REQUIRE(instances_in(cluster, v) == none);
  cluster.with_objects([&](Objects& objects) {
    objects.metadata()[format::session_object(v.me)] = session;
    objects.metadata().at("Super").keys[format::instance_key(v.me)] = record;
  });
  lead_to_all(v);
  const bool is_alloc_too_low = GENERATE(false, true);
  cluster.with_objects([&](Objects& objects) {
    objects.metadata().erase(format::inode_object(root_ino));
    auto& next = objects.metadata().at("Alloc").xattrs.at(format::xattr::next);
    if (is_alloc_too_low) next = encode(format::NumberRecord{v.me.value});
  });
  need(try_repair(cluster.new_client(), v.volume.clock()));
  for (unsigned pass = 0; pass < 2; ++pass) collect(cluster, v.volume.clock());
  CHECK(inode_object_of(cluster, v.file));
  CHECK(findings_of(cluster) == none);
}

TEST_CASE("what a user moves out of /lost+found into a root that was made anew goes when the user deletes it") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([](Objects& objects) { objects.metadata().erase(format::inode_object(root_ino)); });
  need(try_repair(cluster.new_client(), v.volume.clock()));
  {
    const auto mount = v.volume.mount();
    const auto lost = ino_of(*mount.file_system, root_ino, "lost+found");
    const auto name = "inode-" + std::to_string(v.link.value);
    need(mount->rename(*lost, name, root_ino, "link", RenameMode::replace));
    need(mount->unmount());
  }
  collect(cluster, v.volume.clock());
  {
    const auto mount = v.volume.mount();
    need(mount->unlink(root_ino, "link"));
    need(mount->unmount());
  }
  CHECK(findings_of(cluster) == none);
  for (unsigned pass = 0; pass < 2; ++pass) collect(cluster, v.volume.clock());
  CHECK_FALSE(inode_object_of(cluster, v.link));
}

TEST_CASE("what a user deletes from /lost+found is freed, though its lost directory was not the first it was in") {
  TestVolume volume;
  Ino file, second;
  {
    const auto mount = volume.mount();
    auto& fs = *mount.file_system;
    const auto first = make_dir(fs, root_ino, "first");
    second = make_dir(fs, root_ino, "second");
    file = need(fs.make_node({}, first, "file", {FileType::symlink, 0, 0, "target"})).attributes.ino;
    need(fs.rename(first, "file", second, "file", RenameMode::replace));
    need(fs.unmount());
  }
  collect(volume.cluster(), volume.clock());
  volume.cluster().with_objects([&](Objects& objects) { objects.metadata().erase(format::inode_object(second)); });
  need(try_repair(volume.new_client(), volume.clock()));
  {
    const auto mount = volume.mount();
    auto& fs = *mount.file_system;
    need(fs.unlink(*ino_of(fs, root_ino, "lost+found"), "inode-" + std::to_string(file.value)));
    need(fs.unmount());
  }
  for (unsigned pass = 0; pass < 2; ++pass) collect(volume.cluster(), volume.clock());
  CHECK_FALSE(inode_object_of(volume.cluster(), file));
  CHECK(findings_of(volume.cluster()) == none);
}

/// A repair ends when it has named that inode in /lost+found, before an item leads to it. The name.
std::string cut_behind_the_name_of(Ino ino, SmallVolume& v) {
  const auto client = v.volume.new_client();
  client->set_hook([ino, reached = std::make_shared<std::atomic<bool>>(false)](const StepInfo& info) {
    if (info.step == "revive" && info.object == format::inode_object(ino)) *reached = true;
    const bool cut = *reached && info.step == "log queue items";
    return cut ? Fault{Fault::Kind::not_applied_and_crash, ErrorCode::io} : Fault{};
  });
  REQUIRE_FALSE(try_repair(client, v.volume.clock()).has_value());
  v.volume.clock().advance(std::chrono::seconds(61));
  return "inode-" + std::to_string(ino.value);
}

TEST_CASE("what a user deletes from /lost+found is freed, though the repair that named it there was cut behind that") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  const bool root_is_lost = GENERATE(true, false);
  const Ino lost = root_is_lost ? root_ino : v.d, file = root_is_lost ? v.link : v.file;
  cluster.with_objects([&](Objects& objects) { objects.metadata().erase(format::inode_object(lost)); });
  const auto name = cut_behind_the_name_of(file, v);
  need(try_repair(v.volume.new_client(), v.volume.clock()));
  CHECK(findings_of(cluster) == none);
  CHECK(pointers_in_vain(cluster) == none);
  {
    const auto mount = v.volume.mount();
    need(mount->unlink(*ino_of(*mount.file_system, root_ino, "lost+found"), name));
    need(mount->unmount());
  }
  for (unsigned pass = 0; pass < 2; ++pass) collect(cluster, v.volume.clock());
  CHECK_FALSE(inode_object_of(cluster, file));
  CHECK(findings_of(cluster) == none);
}

TEST_CASE(
    "what a user moves from /lost+found into a root made anew goes when it is deleted, where its repair was cut") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([](Objects& objects) { objects.metadata().erase(format::inode_object(root_ino)); });
  const auto name = cut_behind_the_name_of(v.link, v);
  const bool waits = GENERATE(false, true);
  INFO((waits ? "it waits for a link when it is recounted first" : ""));
  {
    const auto mount = v.volume.mount();
    auto& fs = *mount.file_system;
    need(fs.rename(*ino_of(fs, root_ino, "lost+found"), name, root_ino, "link", RenameMode::replace));
    need(fs.unmount());
  }
  if (waits) {
    const auto linking = v.volume.mount();
    bool collected = false;
    linking.client->set_hook([&, linked = std::make_shared<std::atomic<bool>>(false)](const StepInfo& info) {
      if (linked->exchange(linked->load() || info.step == "add link") && !std::exchange(collected, true)) {
        collect(cluster, v.volume.clock());
      }
      return Fault{};
    });
    need(linking->link(v.link, v.d, "further"));
    CHECK(collected);
    linking.client->set_hook({});
    need(linking->unlink(v.d, "further"));
    need(linking->unmount());
  }
  collect(cluster, v.volume.clock());
  {
    const auto mount = v.volume.mount();
    need(mount->unlink(root_ino, "link"));
    need(mount->unmount());
  }
  for (unsigned pass = 0; pass < 2; ++pass) collect(cluster, v.volume.clock());
  CHECK_FALSE(inode_object_of(cluster, v.link));
}

TEST_CASE("the collector counts no names while one that was just repaired may lack its other half") {
  SmallVolume v;
  lead_to_all(v);
  auto& cluster = v.volume.cluster();
  const auto tree = tree_of(cluster, v.volume.clock());
  cluster.with_objects([&](Objects& objects) {
    auto& keys = objects.metadata().at(format::inode_object(v.d)).keys;
    SECTION("its reverse key") {
      auto entry = keys.extract(v.key("file"));
      entry.key() = "n/0000000000000003/file";
      keys.insert(std::move(entry));
      keys.erase(format::reverse_key(v.file, "file"));
    }
    SECTION("the back-pointer of its inode") {
      keys[v.key("file")] = "noise";
      objects.metadata().at(format::inode_object(v.file)).xattrs["parent"] =
          encode(format::BackPointerRecord{v.sub, {v.me, 3}});
    }
  });
  need(try_repair(cluster.new_client(), v.volume.clock()));
  CHECK(findings_of(cluster) == none);
  CHECK(tree_of(cluster, v.volume.clock()) == tree);
}

TEST_CASE("the collector waits for a key that could not be set") {
  SmallVolume v;
  lead_to_all(v);
  auto& cluster = v.volume.cluster();
  const auto tree = tree_of(cluster, v.volume.clock());
  cluster.with_objects([&](Objects& objects) {
    objects.metadata().at(format::inode_object(v.d)).keys.erase(format::reverse_key(v.file, "file"));
  });
  const auto client = cluster.new_client(), other = cluster.new_client();
  bool changed = false;
  client->set_hook([&](const StepInfo& info) {
    const auto time = mutation::SetXattr{"atime", encode(format::TimeRecord{{1, 2}})};
    if (info.step == "put entry" && !std::exchange(changed, true))
      need(other->apply({info.object, "set time", {}, {time}}));
    return Fault{};
  });
  const auto told = need(try_repair(client, v.volume.clock()));
  CHECK(changed);
  CHECK(told.report.repaired == 1);
  CHECK(findings_of(cluster) == none);
  CHECK(tree_of(cluster, v.volume.clock()) == tree);
}

TEST_CASE("the collector runs once no name is in doubt any more") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects(
      [&](Objects& objects) { objects.metadata().at(format::inode_object(v.d)).keys[v.key("file")] = "noise"; });
  need(try_repair(cluster.new_client(), v.volume.clock()));
  CHECK_FALSE(inode_object_of(cluster, v.gone));
}

TEST_CASE("data of a lost file keep their shape beside an object of another program") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  const auto foreign = format::data_object(Ino{60}, {std::uint64_t{1} << 60});
  cluster.with_objects([&](Objects& objects) {
    objects.write(format::data_object(Ino{60}, {1}), 0, std::string("middle"));
    objects.write(format::data_object(Ino{60}, {2}), 0, std::string("end"));
    objects.write(foreign, 0, std::string("theirs"));
  });
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock()));
  CHECK(std::ranges::count(told.left, "unmapped data: " + foreign + ": no file is that large") == 1);
  CHECK(told.report.left == 2);  // it lies past the end, too
  auto mount = v.volume.mount();
  const auto found = need(mount->lookup(root_ino, "lost+found")).attributes.ino;
  const auto kept = need(mount->lookup(found, "inode-60")).attributes.ino;
  const auto bytes = need(content_of_file(*mount.file_system, kept));
  CHECK(bytes.size() == 2 * object_bytes + 3);
  CHECK(bytes.substr(object_bytes, 6) == "middle");
}

TEST_CASE("a file whose map one step has no room for is made anew from its data") {
  TestVolume volume;
  auto& cluster = volume.cluster();
  const auto blocks = txn::map_blocks_of_a_step + 5;
  cluster.with_objects([&](Objects& objects) {
    for (std::uint64_t block = 0; block < blocks; ++block) {
      objects.write(format::data_object(Ino{60}, {block * format::MapBlock::objects}), 0, std::string("x"));
    }
  });
  const auto client = volume.new_client();
  std::size_t most_parts = 0;
  client->set_hook([&most_parts](const StepInfo& info) {
    if (info.txn != nullptr) most_parts = std::max(most_parts, info.txn->mutations.size());
    return Fault{};
  });
  const auto told = need(try_repair(client, volume.clock()));
  CHECK(findings_of(cluster) == none);
  CHECK(told.report.repaired == 3);  // data without an inode, whose number Alloc has not handed out, then an orphan
  CHECK(most_parts < txn::map_blocks_of_a_step + 20);
}

TEST_CASE("data of an inode that nobody can read are left, whatever else is repaired") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([&](Objects& objects) {
    auto& file = objects.metadata().at(format::inode_object(v.file));
    file.xattrs["attr"] = "noise";
    file.keys.erase(format::map_key(0));
    spoil_nsub(objects, v.d);
  });
  const auto told = need(try_repair(cluster.new_client(), v.volume.clock()));
  CHECK(std::ranges::none_of(told.repaired, [](const auto& line) { return line.starts_with("unmapped data"); }));
  const auto line = "unmapped data: " + format::data_object(v.file, {0}) + ": attr of the inode cannot be read";
  CHECK(std::ranges::count(told.left, line) == 1);
}

TEST_CASE("a number of another program's object has no say in what Alloc hands out") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([&](Objects& objects) {
    objects.write(format::data_object(Ino{format::numbers_end - 2}, {0}), 0, std::string("far"));
    objects.metadata().at(format::alloc_object).xattrs["next"] = encode(format::NumberRecord{4});
  });
  need(try_repair(cluster.new_client(), v.volume.clock()));
  CHECK(findings_of(cluster) == none);
  const auto next = need(format::decode_next_number(v.objects_of(format::alloc_object).xattrs.at("next")));
  CHECK(next > v.fifo.value);
  CHECK(next < std::uint64_t{1} << 40);
}

TEST_CASE("a number that is nearly the last one keeps nobody from numbers that are free") {
  SmallVolume v;
  auto& cluster = v.volume.cluster();
  cluster.with_objects([&](Objects& objects) {
    objects.write(format::data_object(Ino{format::numbers_end - 1}, ObjectIndex{0}), 0, std::string("far"));
  });
  need(try_repair(cluster.new_client(), v.volume.clock()));
  auto mount = v.volume.mount();
  make_file(*mount.file_system, v.d, "new");
}

TEST_CASE("a small file whose inode was lost keeps its bytes, though its client died and left a range") {
  TestVolume volume;
  Ino file;
  {
    Mount mount = volume.mount();
    const auto opened = create_file(*mount.file_system, "file");
    file = opened.ino;
    need(write_at(*mount.file_system, opened.handle, 0, "some bytes"));
    need(mount->fsync(opened.handle, false));
    mount.client->crash();
  }
  volume.clock().advance(std::chrono::minutes(2));
  volume.cluster().with_objects([&](Objects& objects) { objects.metadata().erase(format::inode_object(file)); });
  CHECK(findings_of(volume.cluster()) == std::vector<std::string>{"dangling entry: Inode.1"});
  need(try_repair(volume.new_client(), volume.clock()));
  CHECK(findings_of(volume.cluster()) == none);
  Mount looker = volume.mount();
  CHECK(ino_of(*looker.file_system, root_ino, "file") == file);
  const auto opened = need(looker->open({}, file, O_RDONLY));
  CHECK(read_at(*looker.file_system, opened.handle, 0, 100) == "some bytes");
  close_file(*looker.file_system, opened.handle);
  need(looker->unmount());
}

TEST_CASE("a client that is gone is fenced before anything is repaired") {
  SmallVolume v;
  auto mount = v.volume.mount();
  mount.client->set_hook(once_on("insert entry", {Fault::Kind::crash_and_land_later, ErrorCode::io}));
  CHECK_FALSE(mount->make_node({}, v.d, "late", {FileType::regular, 0600, 0, {}}).has_value());
  mount.file_system.reset();
  v.volume.cluster().with_objects([&](Objects& objects) { spoil_nsub(objects, v.d); });
  need(try_repair(v.volume.new_client(), v.volume.clock()));
  CHECK(mount.client->land_late_steps() == 0);
  CHECK(findings_of(v.volume.cluster()) == none);
  CHECK(instances_in(v.volume.cluster(), v) == none);
}

}  // namespace
}  // namespace lccfs
