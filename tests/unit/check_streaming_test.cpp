// SPDX-License-Identifier: LGPL-2.1-or-later
// What findings hold for their repair, what the check reads, and damage that only several objects together show.
#include <algorithm>
#include <random>

#include "check/namespace_check.h"
#include "unit/check_fixture.h"

namespace lccfs {
namespace {

using namespace test;
using format::StateRecord;

void erase(HandMadeVolume& volume, const std::string& object) {
  volume.cluster->with_objects([&](scripted::Objects& objects) { objects.metadata().erase(object); });
}

// ---- what a finding holds

TEST_CASE("a finding on a part of an object names it, and holds the bytes and where they are wrong") {
  HandMadeVolume volume;
  SECTION("a corrupt xattr") {
    volume.edit("Inode.12", [](MetaObject& o) { o.xattrs["atime"] = "nonsense"; });
    const auto finding = volume.finding();
    CHECK(finding.ino == symlink);
    CHECK(finding.part == "atime");
    CHECK_FALSE(finding.is_key);
    CHECK(finding.seen == "nonsense");
    CHECK(finding.text.find("byte 4 of 8") != std::string::npos);
  }
  SECTION("a corrupt key") {
    volume.edit("Inode.11", [](MetaObject& o) { o.keys["l/2"] = "seven"; });
    const auto finding = volume.finding();
    CHECK(finding.kind == Kind::corrupt);
    CHECK(finding.part == "l/2");
    CHECK(finding.is_key);
    CHECK(finding.seen == "seven");
  }
  SECTION("a payload") {
    volume.edit("Inode.12", [](MetaObject& o) { o.payload = "other target"; });
    const auto finding = volume.finding();
    CHECK(finding.kind == Kind::corrupt);
    CHECK(finding.part.empty());
    CHECK(finding.seen == "other target");
  }
  SECTION("an xattr that is missing") {
    const std::string xattr = GENERATE("atime", "mtime", "ctime", "size");
    volume.edit("Inode.11", [&](MetaObject& o) { o.xattrs.erase(xattr); });
    const auto finding = volume.finding();
    CHECK(finding.kind == Kind::missing_part);
    CHECK(finding.part == xattr);
  }
  SECTION("an xattr or key that no version of ours has there") {
    const bool is_key = GENERATE(true, false);
    volume.edit("Inode.11", [&](MetaObject& o) { (is_key ? o.keys : o.xattrs)["unheard-of"] = "x"; });
    const auto finding = volume.finding();
    CHECK(finding.kind == Kind::unknown_part);
    CHECK(finding.part == "unheard-of");
    CHECK(finding.is_key == is_key);
    CHECK(finding.seen == "x");
  }
  SECTION("a long value, of which it holds enough to know it again") {
    const Bytes value(64U << 10, 'x');
    volume.edit("Inode.11", [&](MetaObject& o) { o.keys["u/user.long"] = value; });
    const auto seen = volume.finding().seen;
    CHECK(seen.size() < 1000);
    CHECK(seen == check::as_seen(value));
    CHECK(seen != check::as_seen(value.substr(1)));
    CHECK(seen != check::as_seen(value.substr(1) + 'y'));
  }
  SECTION("in Super") {
    volume.edit("Super", [](MetaObject& o) { o.xattrs.erase("fences"); });
    CHECK(volume.finding().kind == Kind::missing_part);
    CHECK(volume.finding().part == "fences");
  }
}

TEST_CASE("a finding on an entry names it, and its inode") {
  HandMadeVolume volume;
  SECTION("without its reverse key") {
    volume.edit("Inode.10", [](MetaObject& o) { o.keys.erase("i/11/file"); });
    CHECK(volume.finding().name == "file");
    CHECK(volume.finding().target == file);
  }
  SECTION("a reverse key alone") {
    volume.edit("Inode.10", [](MetaObject& o) { o.keys["i/12/other"] = marker; });
    CHECK(volume.finding().name == "other");
    CHECK(volume.finding().target == symlink);
  }
  SECTION("dangling") {
    erase(volume, "Inode.12");
    CHECK(volume.finding().name == "symlink");
    CHECK(volume.finding().target == symlink);
    CHECK(volume.finding().ino == root_ino);
  }
  SECTION("that is not pointed back to") {
    volume.set("Inode.12", "parent", format::BackPointerRecord{directory, Token{me, 5}});
    CHECK(volume.finding().ino == symlink);
    CHECK(volume.finding().target == root_ino);
  }
  SECTION("a further one of a directory, where that does not point back to") {
    volume.put_entry(root_ino, "again", subdirectory, FileType::directory);
    volume.edit("Inode.15", [](MetaObject& o) { o.keys["p/1/2.15"] = marker; });
    volume.set("Inode.1", "nsub", format::NumberRecord{2});
    CHECK(volume.finding().kind == Kind::several_names);
    CHECK(volume.finding().target == subdirectory);
  }
}

TEST_CASE("of a directory's names the one that it points back to first stays, wherever else it points") {
  HandMadeVolume v;
  v.put_entry(root_ino, "again", subdirectory, FileType::directory);
  v.edit("Inode.1", [](MetaObject& o) { o.xattrs["nsub"] = encode(format::NumberRecord{2}); });
  v.edit("Inode.15", [](MetaObject& o) { o.keys["p/1/2.77"] = marker; });
  CHECK(v.finding().kind == Kind::several_names);
  CHECK(v.finding().object == "Inode.1");
}

TEST_CASE("numbers of a finding are what its repair is to write") {
  HandMadeVolume volume;
  SECTION("subdirectories") {
    volume.set("Inode.10", "nsub", format::NumberRecord{7});
    CHECK(volume.finding().number == 1);
  }
  SECTION("links") {
    auto attr = HandMadeVolume::attr_for(symlink, FileType::symlink);
    attr.nlink = 7;
    volume.set("Inode.12", "attr", attr);
    CHECK(volume.finding().number == 1);
  }
  SECTION("numbers in use: one finding, whatever there is") {
    volume.set("Alloc", "next", format::NumberRecord{11});
    CHECK(volume.finding().kind == Kind::number_not_given);
    CHECK(volume.finding().number == 61);  // the end of a range intent
  }
  SECTION("fences, by an inode") {
    volume.set("Inode.11", "fence", format::NumberRecord{3});
    CHECK(volume.finding().kind == Kind::fences_behind);
    CHECK(volume.finding().number == 3);
  }
  SECTION("fences, by a record") {
    format::InstanceRecord record;
    record.identity = "x";
    record.state = format::InstanceRecord::State::fenced;
    record.fence_number = 4;
    volume.edit("Super", [&](MetaObject& o) { o.keys["s/2"] = encode(record); });
    CHECK(volume.finding().kind == Kind::fences_behind);
    CHECK(volume.finding().number == 4);
  }
  SECTION("data objects without an inode") {
    for (const char* object : {"Data.40.9", "Data.40.10", "Data.40.2"}) volume.write_data(object, 0, "x");
    CHECK(volume.finding().kind == Kind::data_without_inode);
    CHECK(volume.finding().object == "Data.40.2");
    CHECK(volume.finding().ino == Ino{40});
    CHECK(volume.finding().number == 3);
  }
  SECTION("a data object's index") {
    volume.write_data("Data.11.1024", 0, "");
    CHECK(volume.finding().kind == Kind::unmapped_data);
    CHECK(volume.finding().number == 1024);
  }
}

// ---- names

TEST_CASE("a file with more or fewer names than links is found wherever its names are") {
  HandMadeVolume volume;
  SECTION("twice in one directory") {
    volume.put_entry(directory, "again", file, FileType::regular);
    CHECK(volume.findings() == Findings{"wrong links: Inode.11"});
    CHECK(volume.finding().number == 2);
  }
  SECTION("also where it does not point back to") {
    volume.put_entry(root_ino, "again", file, FileType::regular);
    CHECK(volume.findings() == Findings{"no back-pointer: Inode.11", "wrong links: Inode.11"});
  }
  SECTION("in two directories that it points back to, but with one link") {
    volume.put_entry(root_ino, "again", file, FileType::regular);
    volume.edit("Inode.11", [](MetaObject& o) { o.keys["p/1/2.11"] = marker; });
    CHECK(volume.findings() == Findings{"wrong links: Inode.11"});
  }
  SECTION("with two links") {
    volume.put_entry(root_ino, "again", file, FileType::regular);
    volume.edit("Inode.11", [](MetaObject& o) {
      auto attr = need(format::decode<format::AttrRecord>(o.xattrs["attr"]));
      attr.nlink = 2;
      o.xattrs["attr"] = encode(attr);
      o.keys["p/1/2.11"] = marker;
    });
    CHECK(volume.findings() == Findings{});
  }
  SECTION("twice, once without a reverse key") {
    volume.put_entry(directory, "again", file, FileType::regular);
    volume.edit("Inode.10", [](MetaObject& o) { o.keys.erase("i/11/again"); });
    CHECK(volume.findings() == Findings{"reverse key: Inode.10", "wrong links: Inode.11"});
  }
  SECTION("nowhere, and its directory is not there either, whatever the queue says") {
    volume.set("Inode.50", "parent", format::BackPointerRecord{Ino{40}, Token{me, 50}});
    CHECK(volume.findings() == Findings{"orphan: Inode.50"});
    volume.edit("Session.2", [](MetaObject& o) { o.keys.erase(format::queue_key(1)); });
    CHECK(volume.findings() == Findings{"orphan: Inode.50"});
  }
  SECTION("nowhere, and it points back to a file") {
    volume.set("Inode.50", "parent", format::BackPointerRecord{file, Token{me, 50}});
    volume.edit("Session.2", [](MetaObject& o) { o.keys.erase(format::queue_key(1)); });
    CHECK(volume.findings() == Findings{"orphan: Inode.50"});
  }
  SECTION("nowhere but in a d/ key of another directory than the one it points back to") {
    volume.edit("Session.2", [](MetaObject& o) { o.keys.erase(format::queue_key(1)); });
    volume.edit("Inode.10", [](MetaObject& o) { o.keys["d/50/2.98"] = marker; });
    CHECK(volume.findings() == Findings{});
  }
}

TEST_CASE("of what a range leads to, it explains what was made in this root, and not what was in one before it") {
  HandMadeVolume volume;
  erase(volume, format::inode_object(unlinked));  // was in that before, too
  const auto make_root_anew = [&](Token birth) {
    volume.edit("Inode.1", [&](MetaObject& o) {
      auto attr = need(format::decode<format::AttrRecord>(o.xattrs["attr"]));
      attr.birth_token = birth;
      o.xattrs["attr"] = encode(attr);
    });
  };
  CHECK(volume.findings() == Findings{});
  make_root_anew({InstanceId{0}, orphan.value - 1});
  CHECK(volume.findings() == Findings{});
  make_root_anew({InstanceId{0}, orphan.value});
  CHECK(volume.findings() == Findings{"orphan: Inode.50"});
  volume.set("Inode.50", "parent", format::BackPointerRecord{root_ino, Token{InstanceId{orphan.value + 1}, 1}});
  volume.edit("Alloc", [](MetaObject& o) { o.xattrs["next"] = encode(format::NumberRecord{1000}); });
  CHECK(volume.findings() == Findings{});
  make_root_anew({me, 1000});
  CHECK(volume.findings() == Findings{});
}

TEST_CASE(
    "of an inode that has its names elsewhere a back-pointer to a lost directory is found, unless the queue leads "
    "there") {
  HandMadeVolume volume;
  const auto point_to = [&](const char* key) { volume.edit("Inode.11", [&](MetaObject& o) { o.keys[key] = marker; }); };
  SECTION("it is not there") {
    point_to("p/40/2.5");
    CHECK(volume.findings() == Findings{"lost trace: Inode.11"});
    CHECK(volume.finding().number == 1);
    SECTION("and an item leads to the inode") {
      volume.edit("Session.2", [](MetaObject& o) {
        o.keys[format::queue_key(70)] = encode(format::QueueItem{format::QueueItem::Kind::inode, file, {}, {}});
      });
      CHECK(volume.findings() == Findings{});
    }
    SECTION("and a d/ key of a directory that an item names leads to the inode") {
      volume.edit("Inode.10", [](MetaObject& o) { o.keys["d/11/2.98"] = marker; });
      CHECK(volume.findings() == Findings{});
    }
  }
  SECTION("it is a directory without its name") {
    point_to("p/15/2.5");
    CHECK(volume.findings() == Findings{});
  }
  SECTION("it is a root that was made anew") {
    volume.edit("Inode.1", [](MetaObject& o) {
      auto attr = need(format::decode<format::AttrRecord>(o.xattrs["attr"]));
      attr.birth_token = {InstanceId{0}, file.value};
      o.xattrs["attr"] = encode(attr);
    });
    point_to("p/1/2.5");
    CHECK(volume.findings() == Findings{"lost trace: Inode.11"});
    volume.put_entry(root_ino, "again", file, FileType::regular);
    volume.edit("Inode.11", [](MetaObject& o) {
      auto attr = need(format::decode<format::AttrRecord>(o.xattrs["attr"]));
      attr.nlink = 2;
      o.xattrs["attr"] = encode(attr);
    });
    CHECK(volume.findings() == Findings{});
    volume.edit("Alloc", [](MetaObject& o) { o.xattrs["next"] = encode(format::NumberRecord{1000}); });
    point_to("p/1/12.5");
    CHECK(volume.findings() == Findings{"lost trace: Inode.11"});
  }
}

TEST_CASE("a d/ key explains no inode that had a further name in a lost directory") {
  HandMadeVolume volume;
  volume.drop_entry(directory, "file", file);
  volume.edit("Inode.10", [](MetaObject& o) { o.keys["d/11/2.98"] = marker; });
  CHECK(volume.findings() == Findings{});
  volume.edit("Inode.11", [](MetaObject& o) { o.keys["p/40/2.5"] = marker; });
  CHECK(volume.findings() == Findings{"orphan: Inode.11"});
}

TEST_CASE("a seal that only a d/ key leads to is no lost trace") {
  HandMadeVolume volume;
  volume.set("Inode.15", "state", StateRecord{StateRecord::Kind::sealed, Token{me, 80}, directory, "subdirectory"});
  volume.drop_entry(directory, "subdirectory", subdirectory);
  volume.set("Inode.10", "nsub", format::NumberRecord{0});
  volume.edit("Inode.10", [](MetaObject& o) { o.keys["d/15/2.80"] = marker; });
  CHECK(volume.findings() == Findings{});
}

TEST_CASE("a directory that the collector is emptying is in order") {
  HandMadeVolume volume;
  volume.drop_entry(root_ino, "directory", directory);
  volume.set("Inode.1", "nsub", format::NumberRecord{0});
  volume.edit("Inode.1", [](MetaObject& o) { o.keys["d/10/2.90"] = marker; });
  CHECK(volume.findings() == Findings{});
  volume.set("Inode.10", "state", StateRecord{StateRecord::Kind::dead, {}, {}, ""});
  volume.set("Inode.10", "nsub", format::NumberRecord{0});
  CHECK(volume.findings() == Findings{});
}

TEST_CASE("of lost trees and rings of directories one directory is named") {
  HandMadeVolume volume;
  volume.drop_entry(root_ino, "directory", directory);
  volume.set("Inode.1", "nsub", format::NumberRecord{0});
  volume.put_entry(subdirectory, "up", directory, FileType::directory);
  volume.set("Inode.15", "nsub", format::NumberRecord{1});
  SECTION("a ring that points back") {
    volume.set("Inode.10", "parent", format::BackPointerRecord{subdirectory, Token{me, 5}});
    volume.edit("Inode.10", [](MetaObject& o) { o.keys.erase("p/1/2.77"); });
    CHECK(volume.findings() == Findings{"unreachable: Inode.10"});
  }
  SECTION("a ring that does not") {
    volume.edit("Inode.10", [](MetaObject& o) { o.keys.erase("p/1/2.77"); });
    CHECK(volume.findings() == Findings{"unreachable: Inode.10", "no back-pointer: Inode.10"});
  }
}

// ---- what is read

/// Directories of files without data, all in order.
std::shared_ptr<ScriptedCluster> plain_volume(unsigned directories, unsigned files) {
  auto cluster = ScriptedCluster::make({.page_limit = 100});
  const auto store = cluster->new_client();
  format::SuperRecord super;
  super.uuid = {4, 5, 6};
  for (const MetaTxn& txn : {txn::make_alloc(), txn::make_root(now), txn::make_super(super),
                             txn::take_numbers(format::first_number, 1'000'000)}) {
    need(store->apply(txn));
  }
  const auto add = [&](Ino ino, FileType type, Ino parent) {
    const Token token{me, ino.value};
    need(store->apply(
        txn::create_inode({ino, HandMadeVolume::attr_for(ino, type), {parent, token}, now, std::nullopt, ""})));
    std::optional<txn::SubdirectoryCount> nsub;
    if (type == FileType::directory) {
      const auto in_parent = need(store->query({.object = format::inode_object(parent), .xattrs = true}));
      const Bytes& old = in_parent.xattrs.at("nsub");
      nsub = {old, need(format::decode<format::NumberRecord>(old)).value + 1};
    }
    MetaTxn insert =
        txn::insert_entry({super.uuid, parent, "name of " + std::to_string(ino.value)}, {ino, type, token}, now, nsub);
    insert.guards.insert(insert.guards.begin(), guard::ObjectExists{});
    need(store->apply(std::move(insert)));
  };
  Ino next{10};
  for (unsigned d = 0; d < directories; ++d) {
    const Ino parent = next;
    add(parent, FileType::directory, root_ino);
    ++next.value;
    for (unsigned f = 0; f < files; ++f, ++next.value) add(next, FileType::regular, parent);
  }
  return cluster;
}

TEST_CASE("in a volume in order each inode is read once, and nothing else but Super and Alloc") {
  const auto cluster = plain_volume(5, 7);
  const auto store = cluster->new_client();
  const auto report = need(check::check_volume(*store, {}, [](const Finding&) { FAIL("nothing is wrong"); }));
  CHECK(report.objects == 2 + 1 + 5 * 8);
  CHECK(report.directories == 1 + 5);
  CHECK(report.other_inodes == 5 * 7);
  CHECK(report.data_objects == 0);
  CHECK(store->counts() == StepCounts{.queries = 2 + 1 + 5 * 8});
}

TEST_CASE("a large directory is read page by page, and judged as a whole") {
  const auto cluster = plain_volume(1, 500);
  const auto store = cluster->new_client();
  need(check::check_volume(*store, {}, [](const Finding&) { FAIL("nothing is wrong"); }));
  // 64 of any keys, then the rest of the reverse keys; the same of the entries; and that there is nothing else.
  CHECK(store->counts().queries == 2 + 1 + 500 + 2 * (1 + (436 + 99) / 100) + 1);
}

TEST_CASE("few extended attributes are in memory at a time, behind whatever other keys they are") {
  const auto cluster = plain_volume(1, 500);
  cluster->with_objects([](scripted::Objects& objects) {
    auto& inode = objects.metadata().at("Inode.10");
    auto attr = need(format::decode<format::AttrRecord>(inode.xattrs.at("attr")));
    attr.flags = format::attr_flag::user_attributes;
    inode.xattrs["attr"] = encode(attr);
    for (unsigned i = 0; i < 200; ++i) inode.keys["u/user." + std::to_string(i)] = "\1x";
  });
  const auto store = cluster->new_client();
  std::uint32_t most = 0;
  store->set_hook([&most](const StepInfo& info) {
    if (info.read == nullptr || !info.object.starts_with("Inode.")) return Fault{};
    for (const auto& range : info.read->ranges) {
      if (range.prefix.empty() || range.prefix == "u/") most = std::max(most, range.limit);
    }
    return Fault{};
  });
  need(check::check_volume(*store, {}, [](const Finding&) { FAIL("nothing is wrong"); }));
  CHECK(most == 64);
}

TEST_CASE("data objects cost one read of their inode, and one of the object at the file's end") {
  HandMadeVolume volume;
  volume.store->reset_record();
  CHECK(volume.findings() == Findings{});
  CHECK(volume.store->counts().reads == 1);  // the leased file's end is not looked at
}

TEST_CASE("orphans cost one read more each, and are told of, however many there are") {
  const auto cluster = plain_volume(1, 500);
  cluster->with_objects([](scripted::Objects& objects) { objects.metadata().erase("Inode.10"); });
  const auto store = cluster->new_client();
  std::set<std::string> orphans;
  need(check::check_volume(*store, {}, [&](const Finding& finding) {
    if (finding.kind == Kind::orphan) orphans.insert(finding.object);
  }));
  CHECK(orphans.size() == 500);
  CHECK(store->counts().queries < 2 * 502 + 50);
}

TEST_CASE("of what a d/ key would explain no more is held than there is room for") {
  constexpr std::uint64_t first = 11, behind = 41, explained = 25;
  constexpr std::size_t room = 8;
  const auto cluster = plain_volume(1, behind - first);
  cluster->with_objects(
      [](scripted::Objects& objects) { objects.metadata().at("Inode.10").keys["d/25/2.98"] = marker; });
  const auto store = cluster->new_client();
  std::vector<std::string> told;
  const std::function<void(const Finding&)> note = [&](const Finding& finding) { told.push_back(finding.object); };
  check::Sink sink(note);
  check::VolumeFacts facts;
  facts.queue.add({format::QueueItem::Kind::directory, Ino{10}, {}, now});
  check::NamespaceIndex index;
  index.directories[Ino{10}].has_detached = true;
  check::DirectoryReader directories(*store, {});
  check::UnlessDetached doubts({*store, facts, index, directories, sink, {}}, room);
  for (std::uint64_t ino = first; ino < behind; ++ino) {
    need(doubts.add_orphan(Ino{ino}, 1, check::UnlessDetached::Unless::queued));
    CHECK(doubts.held() < room);
  }
  need(doubts.finish());
  CHECK(doubts.held() == 0);
  CHECK(told.size() == behind - first - 1);
  CHECK(std::ranges::count(told, format::inode_object(Ino{explained})) == 0);
  CHECK(store->counts().queries == (behind - first + room - 1) / room);  // the keys are read once for so many
}

TEST_CASE("inodes with d/ keys to which no item leads are told of once each") {
  HandMadeVolume volume;
  volume.edit("Session.2", [](MetaObject& o) { o.keys.clear(); });
  const auto found = need(check::check_volume(*volume.store));
  CHECK(std::ranges::count(found, Kind::lost_trace, &Finding::kind) > 0);
  std::multiset<std::string> orphans;
  for (const auto& finding : found) {
    if (finding.kind == Kind::orphan) orphans.insert(finding.object);
  }
  CHECK_FALSE(orphans.empty());
  for (const auto& object : orphans) CHECK(orphans.count(object) == 1);
}

TEST_CASE("a volume of many objects, checked by several threads, has the same findings") {
  const auto cluster = plain_volume(60, 50);
  const auto damage = [&](const std::string& object, const std::function<void(MetaObject&)>& change) {
    cluster->with_objects([&](scripted::Objects& objects) { change(objects.metadata().at(object)); });
  };
  damage("Inode.12", [](MetaObject& o) { o.xattrs.erase("atime"); });
  damage("Inode.62", [](MetaObject& o) { o.xattrs["parent"] = encode(format::BackPointerRecord{Ino{10}, {me, 1}}); });
  damage("Inode.61",
         [](MetaObject& o) { std::erase_if(o.keys, [](const auto& k) { return k.first.ends_with(" 63"); }); });
  cluster->with_objects([](scripted::Objects& objects) { objects.metadata().erase("Inode.2000"); });
  const Findings expected{"missing part: Inode.12", "no back-pointer: Inode.62", "orphan: Inode.63",
                          "dangling entry: Inode.1999"};
  for (const unsigned jobs : {0U, 1U, 3U, 64U}) {
    const auto store = cluster->new_client();
    Findings found;
    std::uint64_t done = 0;
    const check::CheckOptions options{.jobs = jobs, .on_progress = [&done](const check::Progress& progress) {
                                        CHECK(progress.objects_expected > 3000);
                                        done = std::max(done, progress.objects_done);
                                      }};
    const auto report = need(check::check_volume(*store, options, [&found](const Finding& finding) {
      found.insert(std::string(describe(finding.kind)) + ": " + finding.object);
    }));
    CHECK(found == expected);
    CHECK(report.findings == expected.size());
    CHECK(done > 0);
  }
}

TEST_CASE("what a collector removes between the listing and the read is no matter") {
  HandMadeVolume volume;
  volume.edit("Session.2", [](MetaObject& o) { o.keys.erase(format::queue_key(1)); });
  volume.store->set_hook([&volume](const StepInfo& step) {
    if (step.object == "Inode.1") erase(volume, "Inode.50");
    return Fault{};
  });
  CHECK(volume.findings() == Findings{});
}

TEST_CASE("an object that cannot be read is told, with all else that is told of one alone, and explains nothing") {
  std::vector<std::string> inodes;
  HandMadeVolume().cluster->with_objects([&inodes](scripted::Objects& objects) {
    for (const auto& [name, object] : objects.metadata()) {
      if (name.starts_with("Inode.")) inodes.push_back(name);
    }
  });
  REQUIRE(inodes.size() > 5);
  const auto code = GENERATE(ErrorCode::io, ErrorCode::corrupt);
  for (const auto& unreadable : inodes) {
    INFO(unreadable);
    HandMadeVolume volume;
    const std::string damaged = unreadable == inodes.front() ? inodes.back() : inodes.front();
    volume.edit(damaged, [](MetaObject& object) { object.xattrs.erase("atime"); });
    volume.store->set_hook([&](const StepInfo& step) {
      return step.object == unreadable ? Fault{Fault::Kind::fail, code} : Fault{};
    });
    Findings found;
    const auto result = check::check_volume(*volume.store, {}, [&found](const Finding& finding) {
      found.insert(std::string(describe(finding.kind)) + ": " + finding.object);
    });
    CHECK(need(result).unreadable == 1);
    CHECK_FALSE(check::expect_all_was_read(*result));
    CHECK(found == Findings{"unreadable: " + unreadable, "missing part: " + damaged});
  }
}

TEST_CASE("a read or a listing that times out is done again, many times but not for ever") {
  HandMadeVolume volume;
  const unsigned time_outs = GENERATE(1U, 9U, 10U);
  unsigned most = 0;
  std::map<std::pair<StepKind, std::string>, unsigned> met;
  volume.store->set_hook([&](const StepInfo& step) {
    auto& times = met[{step.kind, step.object}];
    most = std::max(most, ++times);
    return times <= time_outs ? Fault{Fault::Kind::fail, ErrorCode::timed_out} : Fault{};
  });
  const auto result = check::check_volume(*volume.store);
  CHECK(result.has_value() == (time_outs < 10));
  if (result) CHECK(result->empty());
  if (!result) CHECK(result.error().code == ErrorCode::timed_out);
  if (!result) CHECK(most == 10);
}

TEST_CASE("an error of the store's is an error, and no finding of the volume's") {
  HandMadeVolume volume;
  volume.edit("Session.2", [](MetaObject& o) { o.keys.erase(format::queue_key(1)); });
  const unsigned failing = GENERATE(range(0U, 40U));
  unsigned steps = 0;
  volume.store->set_hook([&](const StepInfo&) {
    return steps++ == failing ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  const auto result = check::check_volume(*volume.store);
  if (steps > failing) {
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == ErrorCode::io);
  }
}

}  // namespace
}  // namespace lccfs
