// SPDX-License-Identifier: LGPL-2.1-or-later
// Each rule of the check, on a small volume made step by step.
#include <algorithm>
#include <random>

#include "objects/super.h"
#include "support/newer_record.h"
#include "unit/check_fixture.h"

namespace lccfs {
namespace {

using namespace test;

TEST_CASE("a volume in which all is well has no finding: leftovers that the queue leads to are none") {
  HandMadeVolume volume;
  CHECK(volume.findings() == Findings{});
}

TEST_CASE("V: an entry whose inode is missing or dead is found") {
  HandMadeVolume volume;
  SECTION("missing") {
    volume.cluster->with_objects([](scripted::Objects& objects) { objects.metadata().erase("Inode.12"); });
    CHECK(volume.findings() == Findings{"dangling entry: Inode.1"});
  }
  SECTION("dead") {
    volume.set("Inode.12", "state", format::StateRecord{format::StateRecord::Kind::dead, {}, {}, ""});
    CHECK(volume.findings() == Findings{"dangling entry: Inode.1"});
  }
}

TEST_CASE("a sealed directory counts as live, and an item must lead to it") {
  HandMadeVolume volume;
  volume.set("Inode.15", "state",
             format::StateRecord{format::StateRecord::Kind::sealed, Token{me, 80}, directory, "subdirectory"});
  CHECK(volume.findings() == Findings{"lost trace: Inode.15"});
  volume.edit("Session.2", [](MetaObject& o) {
    o.keys[format::queue_key(4)] = encode(format::QueueItem{format::QueueItem::Kind::inode, subdirectory, {}, now});
  });
  CHECK(volume.findings() == Findings{});
}

TEST_CASE("a decision in a directory that no item names is found") {
  HandMadeVolume volume;
  volume.edit("Session.2", [](MetaObject& o) { o.keys.erase(format::queue_key(5)); });
  CHECK(volume.findings() == Findings{"lost trace: Inode.10"});
  volume.edit("Inode.10", [](MetaObject& o) { o.xattrs.erase("attr"); });
  CHECK(volume.findings() == Findings{"missing part: Inode.10", "lost trace: Inode.10"});
}

TEST_CASE("P: an inode that does not point back to a directory that names it is found") {
  HandMadeVolume volume;
  SECTION("another directory") {
    volume.set("Inode.12", "parent", format::BackPointerRecord{directory, Token{me, 5}});
    CHECK(volume.findings() == Findings{"no back-pointer: Inode.12"});
  }
  SECTION("no back-pointer at all") {
    volume.edit("Inode.12", [](MetaObject& o) { o.xattrs.erase("parent"); });
    CHECK(volume.findings() == Findings{"no back-pointer: Inode.12"});
  }
  SECTION("a further back-pointer is as good as the first") {
    volume.set("Inode.12", "parent", format::BackPointerRecord{directory, Token{me, 5}});
    volume.edit("Inode.12", [](MetaObject& o) { o.keys["p/1/2.5"] = marker; });
    CHECK(volume.findings() == Findings{});
  }
}

TEST_CASE("Q: an inode without a name that the queue does not lead to is found") {
  HandMadeVolume volume;
  SECTION("no d/ key") {
    volume.edit("Inode.1", [](MetaObject& o) { o.keys.erase("d/13/2.99"); });
    CHECK(volume.findings() == Findings{"orphan: Inode.13"});
  }
  SECTION("no directory item") {
    volume.edit("Session.2", [](MetaObject& o) { o.keys.erase(format::queue_key(3)); });
    CHECK(volume.findings() == Findings{"lost trace: Inode.1", "orphan: Inode.13"});
  }
  SECTION("an inode item instead") {
    volume.edit("Session.2", [](MetaObject& o) {
      o.keys[format::queue_key(3)] = encode(format::QueueItem{format::QueueItem::Kind::inode, unlinked, {}, now});
    });
    CHECK(volume.findings() == Findings{"lost trace: Inode.1"});
  }
  SECTION("no range, though there is one beside it") {
    volume.edit("Session.2", [](MetaObject& o) { o.keys.erase(format::queue_key(1)); });
    CHECK(volume.findings() == Findings{"orphan: Inode.50"});
  }
  SECTION("a range within another") {
    volume.edit("Session.2", [](MetaObject& o) {
      o.keys[format::queue_key(4)] = encode(format::QueueItem{format::QueueItem::Kind::range, Ino{49}, Ino{50}, now});
    });
    CHECK(volume.findings() == Findings{});
  }
  SECTION("a range of more numbers than any client takes: a collector takes it for damage") {
    volume.edit("Session.2", [](MetaObject& o) {
      o.keys[format::queue_key(1)] =
          encode(format::QueueItem{format::QueueItem::Kind::range, Ino{50}, Ino{std::uint64_t{1} << 40}, now});
    });
    CHECK(volume.findings() == Findings{"corrupt: Session.2", "orphan: Inode.50"});
  }
  SECTION("a queue that nobody looks into") {
    volume.edit("Super", [](MetaObject& o) { o.keys.erase("s/2"); });
    CHECK(volume.findings() == Findings{"stray session: Session.2", "lost trace: Inode.1", "lost trace: Inode.10",
                                        "orphan: Inode.13", "orphan: Inode.50"});
  }
}

TEST_CASE(
    "M: the first data object of a number that a range has may come before its inode; no other, and no further one") {
  HandMadeVolume volume;
  for (const char* object : {"Data.55.0", "Data.45.0", "Data.56.1", "Data.57.0", "Data.57.1"}) {
    volume.write_data(object, 0, "x");
  }
  CHECK(volume.findings() ==
        Findings{"data without inode: Data.45.0", "data without inode: Data.56.1", "data without inode: Data.57.0"});
}

TEST_CASE("Q: a number of links that differs from the names is found, unless the queue leads there") {
  HandMadeVolume volume;
  auto attr = HandMadeVolume::attr_for(symlink, FileType::symlink);
  attr.nlink = 2;
  volume.set("Inode.12", "attr", attr);
  CHECK(volume.findings() == Findings{"wrong links: Inode.12"});
  volume.edit("Session.2", [](MetaObject& o) {
    o.keys[format::queue_key(4)] = encode(format::QueueItem{format::QueueItem::Kind::inode, symlink, {}, now});
  });
  CHECK(volume.findings() == Findings{});
}

TEST_CASE("Q: a directory item leads to the directory itself while that is sealed") {
  HandMadeVolume volume;
  volume.drop_entry(directory, "subdirectory", subdirectory);
  volume.set("Inode.10", "nsub", format::NumberRecord{0});
  volume.edit("Session.2", [](MetaObject& o) {
    o.keys[format::queue_key(4)] = encode(format::QueueItem{format::QueueItem::Kind::directory, subdirectory, {}, now});
  });
  CHECK(volume.findings() == Findings{"orphan: Inode.15"});
  volume.set("Inode.15", "state",
             format::StateRecord{format::StateRecord::Kind::sealed, Token{me, 80}, directory, "subdirectory"});
  CHECK(volume.findings() == Findings{});
}

TEST_CASE("M: a data object without an inode, or whose bit is not set, is found") {
  HandMadeVolume volume;
  SECTION("no inode") {
    volume.write_data("Data.40.0", 0, "x");
    CHECK(volume.findings() == Findings{"data without inode: Data.40.0"});
  }
  SECTION("no bit in a block") {
    volume.edit("Inode.11", [](MetaObject& o) {
      format::MapBlock block;
      block.may_exist.set(0);
      o.keys[format::map_key(0)] = encode(block);
    });
    CHECK(volume.findings() == Findings{"unmapped data: Data.11.1"});
  }
  SECTION("no block") {
    volume.edit("Inode.11", [](MetaObject& o) { o.keys.erase(format::map_key(0)); });
    CHECK(volume.findings() == Findings{"unmapped data: Data.11.0", "unmapped data: Data.11.1"});
  }
  SECTION("of a directory") {
    volume.write_data("Data.10.0", 0, "x");
    CHECK(volume.findings() == Findings{"data without inode: Data.10.0"});
  }
  SECTION("a set bit promises nothing") {
    volume.cluster->with_objects([](scripted::Objects& objects) { objects.remove("Data.11.0"); });
    CHECK(volume.findings() == Findings{});
  }
}

TEST_CASE("T: bytes past the size are found while nobody holds the lease, and are no matter while somebody does") {
  HandMadeVolume volume;
  SECTION("in the boundary object") {
    volume.write_data("Data.11.1", 10, "y");
    CHECK(volume.findings() == Findings{"data past the size: Data.11.1"});
  }
  SECTION("in an object after it") {
    volume.set("Inode.11", "size", format::NumberRecord{object_size});
    CHECK(volume.findings() == Findings{"data past the size: Data.11.1"});
  }
  SECTION("the lease is released") {
    volume.edit("Inode.14", [](MetaObject& o) { o.xattrs.erase("lease"); });
    CHECK(volume.findings() == Findings{"data past the size: Data.14.0", "data past the size: Data.14.1"});
  }
  SECTION("an instance without a record holds the lease") {
    volume.set("Inode.14", "lease", format::NumberRecord{77});
    CHECK(volume.findings() == Findings{});
  }
}

TEST_CASE("an entry without its reverse key, and a reverse key without its entry, are found") {
  HandMadeVolume volume;
  SECTION("no reverse key") {
    volume.edit("Inode.10", [](MetaObject& o) { o.keys.erase("i/11/file"); });
    CHECK(volume.findings() == Findings{"reverse key: Inode.10"});
  }
  SECTION("no entry") {
    volume.edit("Inode.10", [](MetaObject& o) { o.keys["i/11/other"] = marker; });
    CHECK(volume.findings() == Findings{"stray reverse key: Inode.10"});
  }
  SECTION("an entry for another inode") {
    volume.edit("Inode.10", [](MetaObject& o) { o.keys["i/12/file"] = marker; });
    CHECK(volume.findings() == Findings{"stray reverse key: Inode.10"});
  }
}

TEST_CASE("a mark that stands in the entry or in its reverse key alone is found, and another one there") {
  HandMadeVolume volume;
  const auto marked = [](std::uint64_t number) {
    return encode(format::EntryRecord{file, FileType::regular, Token{me, file.value},
                                      format::EntryRecord::Mark{Token{me, number}, root_ino}});
  };
  const auto set_keys = [&](const Bytes& entry, const Bytes& reverse) {
    volume.edit("Inode.10", [&](MetaObject& o) {
      if (!entry.empty()) o.keys[volume.key("file")] = entry;
      o.keys["i/11/file"] = reverse;
    });
  };
  SECTION("in both it is none") {
    set_keys(marked(90), marked(90));
    CHECK(volume.findings() == Findings{});
  }
  SECTION("in the entry") {
    set_keys(marked(90), marker);
    CHECK(volume.findings() == Findings{"different marks: Inode.10"});
  }
  SECTION("in the reverse key") {
    set_keys({}, marked(90));
    CHECK(volume.findings() == Findings{"different marks: Inode.10"});
  }
  SECTION("in both, of two moves") {
    set_keys(marked(90), marked(91));
    CHECK(volume.findings() == Findings{"different marks: Inode.10"});
  }
  SECTION("a reverse key that cannot be read is one finding, not two") {
    set_keys(marked(90), "noise");
    CHECK(volume.findings() == Findings{"corrupt: Inode.10"});
  }
}

TEST_CASE("a count of subdirectories that is not their number is found") {
  HandMadeVolume volume;
  volume.set("Inode.10", "nsub", format::NumberRecord{2});
  CHECK(volume.findings() == Findings{"number of subdirectories: Inode.10"});
}

TEST_CASE("a directory with two names is found") {
  HandMadeVolume volume;
  volume.put_entry(directory, "again", subdirectory, FileType::directory);
  volume.set("Inode.10", "nsub", format::NumberRecord{2});
  CHECK(volume.findings() == Findings{"directory with several names: Inode.10"});
}

TEST_CASE("a directory that names the root is found") {
  HandMadeVolume volume;
  volume.put_entry(directory, "up", root_ino, FileType::directory);
  volume.set("Inode.10", "nsub", format::NumberRecord{2});
  CHECK(volume.findings() == Findings{"directory with several names: Inode.10", "no back-pointer: Inode.1"});
}

TEST_CASE("directories that no path from the root leads to are found, a ring of them too") {
  HandMadeVolume volume;
  volume.drop_entry(root_ino, "directory", directory);
  volume.set("Inode.1", "nsub", format::NumberRecord{0});
  SECTION("below one that lost its name") {
    CHECK(volume.findings() == Findings{"unreachable: Inode.10", "orphan: Inode.10"});
  }
  SECTION("in a ring") {
    volume.put_entry(subdirectory, "up", directory, FileType::directory);
    volume.set("Inode.15", "nsub", format::NumberRecord{1});
    volume.set("Inode.10", "parent", format::BackPointerRecord{subdirectory, Token{me, 5}});
    CHECK(volume.findings() == Findings{"unreachable: Inode.10"});
  }
}

TEST_CASE("an entry of another type than its inode is found") {
  HandMadeVolume volume;
  volume.put_entry(root_ino, "symlink", symlink, FileType::fifo);
  CHECK(volume.findings() == Findings{"wrong type: Inode.1"});
}

TEST_CASE("what does not fit the inode's type is found") {
  HandMadeVolume volume;
  SECTION("a directory with a size") {
    volume.set("Inode.10", "size", format::NumberRecord{0});
    CHECK(volume.findings() == Findings{"unknown part: Inode.10"});
  }
  SECTION("a symlink with a lease") {
    volume.set("Inode.12", "lease", format::NumberRecord{2});
    CHECK(volume.findings() == Findings{"unknown part: Inode.12"});
  }
  SECTION("a file with entries") {
    volume.edit("Inode.11", [&](MetaObject& o) { o.keys["i/12/x"] = marker; });
    CHECK(volume.findings() == Findings{"unknown part: Inode.11"});
  }
  SECTION("a directory with a map") {
    volume.edit("Inode.10", [&](MetaObject& o) { o.keys[format::map_key(0)] = encode(format::MapBlock{}); });
    CHECK(volume.findings() == Findings{"unknown part: Inode.10"});
  }
  SECTION("a symlink of the wrong length") {
    volume.edit("Inode.12", [](MetaObject& o) { o.payload = "other target"; });
    CHECK(volume.findings() == Findings{"corrupt: Inode.12"});
  }
}

/// An xattr or a key of an object.
struct Part {
  const char* object;
  std::string name;
  Bytes value;
};

std::vector<Part> keys_with(Token token, const HandMadeVolume& volume) {
  const format::EntryRecord entry{file, FileType::regular, token};
  const format::EntryRecord marked{file, FileType::regular, {me, 11}, {{token, root_ino}}};
  const format::LocksRecord locks{1, {{true, true, 0, 0}}};
  const format::RenameLockRecord lock{format::RenameLockRecord::Kind::free, token, root_ino};
  return {{"Inode.12", format::back_pointer_key(root_ino, token), marker},
          {"Inode.12", format::step_number_key(token.instance), format::step_number_value(7)},
          {"Inode.1", format::detached_key(unlinked, token), marker},
          {"Inode.10", format::decision_key(token), encode(format::DecisionRecord{})},
          {"Inode.11", format::locks_key(token.instance), encode(locks)},
          {"Inode.11", format::opener_key(token.instance), marker},
          {"Inode.10", volume.key("file"), encode(entry)},
          {"Inode.10", volume.key("file"), encode(marked)},
          {"Super", format::rename_lock_key, encode(lock)}};
}

std::vector<Part> xattrs_with(Token token) {
  auto attr = HandMadeVolume::attr_for(symlink, FileType::symlink);
  attr.birth_token = token;
  const format::StateRecord sealed{format::StateRecord::Kind::sealed, token, directory, "subdirectory"};
  return {{"Inode.12", "attr", encode(attr)},
          {"Inode.15", "state", encode(sealed)},
          {"Inode.12", "parent", encode(format::BackPointerRecord{root_ino, token})},
          {"Inode.14", "lease", encode(format::NumberRecord{token.instance.value})},
          {"Inode.10", "lease", encode(format::DirectoryLeaseRecord{token})},
          {"Inode.10", "behind", encode(format::DirectoryLeaseRecord{token})},
          {"Inode.11", "taken", encode(format::TakenRecord{token})},
          {"Inode.11", "locks", encode(format::LockStateRecord{format::LockStateRecord::Kind::leased, token})}};
}

/// What is found where that part names an instance of that number.
Findings findings_with(std::size_t nth, InstanceId instance) {
  HandMadeVolume volume;
  const auto keys = keys_with({instance, 1}, volume), xattrs = xattrs_with({instance, 1});
  const bool is_key = nth < keys.size();
  const Part& part = is_key ? keys[nth] : xattrs.at(nth - keys.size());
  volume.edit(part.object, [&](MetaObject& o) { (is_key ? o.keys : o.xattrs)[part.name] = part.value; });
  return volume.findings();
}

TEST_CASE("an instance of which only a token or a key is left has a number that Alloc must not hand out again") {
  const auto parts = keys_with({}, HandMadeVolume()).size() + xattrs_with({}).size();
  for (std::size_t nth = 0; nth < parts; ++nth) {
    INFO("part " << nth);
    auto expected = findings_with(nth, InstanceId{101});
    CHECK_FALSE(expected.contains("number not handed out: Alloc"));
    expected.insert("number not handed out: Alloc");
    CHECK(findings_with(nth, InstanceId{102}) == expected);
  }
}

TEST_CASE("a token with a number that is never handed out says nothing about Alloc") {
  HandMadeVolume volume;
  volume.edit("Inode.12", [](MetaObject& o) {
    o.keys[format::back_pointer_key(root_ino, {InstanceId{format::numbers_end}, 1})] = marker;
    o.keys[format::step_number_key(InstanceId{format::numbers_end - (1 << 20)})] = format::step_number_value(7);
    o.keys[format::step_number_key(InstanceId{~std::uint64_t{0}})] = format::step_number_value(7);
  });
  CHECK(volume.findings() == Findings{});
}

TEST_CASE("a block of the map that no file reaches with objects of the volume's size is found") {
  HandMadeVolume volume;
  auto super = need(objects::read_super(objects::reader_of(*volume.store))).record;
  super.object_size_bytes *= 2;
  volume.set("Super", "super", super);
  volume.set("Inode.11", "size", format::NumberRecord{4 * object_size});
  format::MapBlock block;
  block.may_exist.set(0);
  const auto blocks = std::uint64_t{1} << 36;
  volume.edit("Inode.11", [&](MetaObject& o) { o.keys[format::map_key(blocks - 1)] = encode(block); });
  CHECK(volume.findings() == Findings{});
  volume.edit("Inode.11", [&](MetaObject& o) { o.keys[format::map_key(blocks)] = encode(block); });
  CHECK(volume.findings() == Findings{"unknown part: Inode.11"});
}

TEST_CASE("a name under another hash than its own is found") {
  HandMadeVolume volume;
  volume.edit("Inode.10", [&](MetaObject& o) {
    auto entry = o.keys.extract(volume.key("file"));
    entry.key() = "n/0000000000000003/file";
    o.keys.insert(std::move(entry));
  });
  CHECK(volume.findings() == Findings{"corrupt: Inode.10", "stray reverse key: Inode.10", "orphan: Inode.11"});
}

TEST_CASE("objects of other programs, and numbers that Alloc has not handed out, are found") {
  HandMadeVolume volume;
  SECTION("a name that does not belong to LCCFS") {
    volume.write_data("rbd_data.1", 0, "x");
    CHECK(volume.findings() == Findings{"unknown object: rbd_data.1"});
  }
  SECTION("an inode above the counter") {
    volume.set("Alloc", "next", format::NumberRecord{50});
    CHECK(volume.findings() == Findings{"number not handed out: Alloc"});
  }
  SECTION("one that is never handed out says nothing about Alloc") {
    const Ino foreign{format::numbers_end - 2};
    format::InstanceRecord ended;
    ended.state = format::InstanceRecord::State::ended;
    volume.write_data(format::data_object(foreign, ObjectIndex{0}), 0, "x");
    volume.edit("Super", [&](MetaObject& o) { o.keys[format::instance_key({foreign.value})] = encode(ended); });
    const auto found = "data without inode: " + format::data_object(foreign, ObjectIndex{0});
    CHECK(volume.findings() == Findings{found});
    volume.set("Alloc", "next", format::NumberRecord{50});
    CHECK(volume.findings() == Findings{found, "number not handed out: Alloc"});
  }
}

TEST_CASE("an extended attribute that the flags deny is found") {
  HandMadeVolume volume;
  const std::string key = GENERATE("u/security.capability", "u/system.posix_acl_access", "u/system.posix_acl_default");
  volume.edit("Inode.11", [&key](MetaObject& o) { o.keys[key] = "\1x"; });
  CHECK(volume.findings() == Findings{"denied attribute: Inode.11"});
}

TEST_CASE("a volume without Super, Alloc or root is found, and nothing else is said that rests on them") {
  const std::string object = GENERATE("Super", "Alloc", "Inode.1");
  HandMadeVolume volume;
  volume.cluster->with_objects([&](scripted::Objects& objects) { objects.metadata().erase(object); });
  CHECK(volume.findings().contains("missing object: " + object));
}

TEST_CASE("a record of a newer version is named as such") {
  HandMadeVolume volume;
  volume.edit("Inode.12", [](MetaObject& o) { o.xattrs["atime"] = record_of_newer_version(); });
  CHECK(volume.findings() == Findings{"newer version: Inode.12"});
}

TEST_CASE("every byte of every record that is not as it was written is found in its object") {
  HandMadeVolume volume;
  std::vector<std::pair<std::string, std::string>> parts;  // object, xattr or key
  volume.cluster->with_objects([&](scripted::Objects& objects) {
    for (const auto& [name, object] : objects.metadata()) {
      for (const auto& [xattr, value] : object.xattrs) parts.emplace_back(name, xattr);
      for (const auto& [key, value] : object.keys) parts.emplace_back(name, key);
    }
  });
  for (const auto& [name, part] : parts) {
    if (part.starts_with("u/")) continue;  // a user's bytes
    INFO(name << " " << part);
    for (std::size_t at = 0;; ++at) {
      Bytes before;
      const auto value_in = [&](MetaObject& o) -> Bytes& {
        return o.xattrs.contains(part) ? o.xattrs[part] : o.keys[part];
      };
      volume.edit(name, [&](MetaObject& o) {
        before = value_in(o);
        if (at < before.size()) value_in(o)[at] = static_cast<char>(value_in(o)[at] ^ 0x80);
      });
      if (at >= before.size()) break;
      const auto found = volume.findings();
      if (std::ranges::count(found, "corrupt: " + name) == 0) FAIL("byte " << at << " may be anything");
      volume.edit(name, [&](MetaObject& o) { value_in(o) = before; });
    }
  }
  CHECK(volume.findings() == Findings{});
}

TEST_CASE("any bytes in any object are reported, and never a crash") {
  std::mt19937_64 random(24);
  const auto noise = [&random](std::size_t limit) {
    Bytes bytes(1 + random() % limit, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    return bytes;
  };
  for (unsigned round = 0; round < 500; ++round) {
    HandMadeVolume volume;
    volume.cluster->with_objects([&](scripted::Objects& objects) {
      for (auto& [name, object] : objects.metadata()) {
        if (random() % 2 == 0) continue;
        for (auto& [xattr, value] : object.xattrs) {
          if (random() % 2 == 0) value = noise(80);
        }
        for (auto& [key, value] : object.keys) {
          if (random() % 2 == 0) value = noise(80);
        }
        object.keys[std::string(1, "nidxplumsqk"[random() % 11]) + "/" + noise(30)] = noise(80);
        object.xattrs[noise(8)] = noise(80);
      }
      objects.metadata()["Inode." + noise(4)];
    });
    const auto found = volume.findings();
    REQUIRE(std::ranges::any_of(
        found, [](const auto& text) { return text.starts_with("corrupt") || text.starts_with("unknown"); }));
  }
}

}  // namespace
}  // namespace lccfs
