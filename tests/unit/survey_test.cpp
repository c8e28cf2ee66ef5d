// SPDX-License-Identifier: LGPL-2.1-or-later
// What the tools read of a volume, and a dump's lines, damaged ones among them; loading them is load_test.cpp.
#include <algorithm>
#include <iomanip>
#include <random>
#include <set>
#include <sstream>

#include "base/bytes.h"
#include "format/layout.h"
#include "load_fixture.h"
#include "survey/base64.h"
#include "survey/dump_lines.h"
#include "survey/inode_facts.h"
#include "survey/usage.h"

namespace lccfs::test {
namespace {

using survey::DumpReader;
using survey::DumpWriter;

txn::LoadedInode odd_inode() {
  txn::LoadedInode inode;
  inode.ino = Ino{77};
  inode.attr.mode = 04711;
  inode.attr.uid = 0xffffffff;
  inode.attr.nlink = 3;
  inode.attr.birth_token = txn::token_of_load;
  inode.atime = {-5, 999'999'999};
  inode.size_bytes = format::file_size_limit_bytes;
  inode.parents = {Ino{1}, Ino{9}};
  inode.attributes = {{"user.\xff", std::string(1, '\0')}, {format::attribute::capability, "x"}};
  inode.attr.flags = format::attr_flag::user_attributes | format::attr_flag::capability;
  objects::AllocationMap map;
  for (const std::uint64_t index : {0, 1, 2, 1023, 1024, 5000}) map.set_may_exist({index});
  map.set_units_there({1}, format::all_units);
  map.set_units_there({2}, format::all_units);
  map.set_units_there({1024}, 5);
  inode.map_blocks = map.blocks();
  return inode;
}

TEST_CASE("base64 is RFC 4648's, and nothing else is read") {
  for (const auto& [bytes, text] : std::vector<std::pair<std::string, std::string>>{
           {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"\xff\xfe\xfd\xfc", "//79/A=="}}) {
    CHECK(survey::to_base64(bytes) == text);
    CHECK(survey::from_base64(text) == bytes);
  }
  for (const char* wrong : {"Z", "Zg", "Zg=", "Zh==", "Zg==Zg==", "Z g=", "====", "Zm9v\n"})
    CHECK_FALSE(survey::from_base64(wrong));
}

TEST_CASE("an inode's line has all of it") {
  DumpWriter writer;
  const auto line = writer.line(odd_inode());
  REQUIRE(line.ends_with("\"}\n"));
  const auto read = DumpReader().read(line.substr(0, line.size() - 1));
  REQUIRE(read);
  const auto& inode = std::get<txn::LoadedInode>(*read);
  const auto wanted = odd_inode();
  CHECK(encode(inode.attr) == encode(wanted.attr));
  CHECK((inode.atime == wanted.atime && inode.size_bytes == wanted.size_bytes && inode.parents == wanted.parents));
  CHECK((inode.attributes == wanted.attributes && inode.map_blocks == wanted.map_blocks));
}

TEST_CASE("a line that is damaged, repeated or not in its place is refused") {
  DumpWriter writer;
  const auto first = writer.line(odd_inode()), second = writer.line(survey::DumpEnd{1, 0});
  const auto without_end = [](const std::string& line) { return line.substr(0, line.size() - 1); };
  DumpReader reader;
  CHECK(reader.read(without_end(first)));
  CHECK(reader.read(without_end(second)));
  CHECK_FALSE(DumpReader().read(without_end(second)));
  DumpReader twice;
  CHECK(twice.read(without_end(first)));
  CHECK_FALSE(twice.read(without_end(first)));
  std::mt19937 random(7);
  for (std::size_t at = 0; at + 1 < first.size(); ++at) {
    auto damaged = without_end(first);
    damaged[at] = static_cast<char>(damaged[at] ^ (1U << random() % 8));
    CHECK_FALSE(DumpReader().read(damaged));
    CHECK_FALSE(DumpReader().read(damaged.substr(0, at)));
  }
}

TEST_CASE("what a line with a right checksum says is checked, too") {
  const auto with_checksum = [](std::string text) {
    // The writer's own end, after another body.
    const auto crc = crc32c("00000000" + text);
    std::ostringstream line;
    line << text << ",\"crc32c\":\"" << std::hex << std::setw(8) << std::setfill('0') << crc << "\"}";
    return line.str();
  };
  DumpWriter writer;
  auto inode = writer.line(odd_inode());
  inode.resize(inode.find(",\"crc32c\""));
  REQUIRE(DumpReader().read(with_checksum(inode)));
  const auto refused = [&](const std::string& what, const std::string& instead) {
    auto text = inode;
    const auto at = text.find(what);
    REQUIRE(at != std::string::npos);
    text.replace(at, what.size(), instead);
    const auto read = DumpReader().read(with_checksum(text));
    INFO(text);
    CHECK((!read && !read.error().context.empty() && !read.error().context.contains('\n')));
  };
  refused("\"inode\":77", "\"inode\":0");
  refused("\"inode\":77", "\"inode\":9223372036854775808");
  refused("\"inode\":77", "\"inode\":-1");
  refused("\"inode\":77", "\"inode\":\"77\"");
  refused("\"type\":\"file\"", "\"type\":\"whiteout\"");
  refused("\"type\":\"file\"", "\"type\":\"directory\"");
  refused("\"mode\":2505", "\"mode\":4096");
  refused("\"uid\":4294967295", "\"uid\":4294967296");
  refused("\"links\":3", "\"links\":3.5");
  refused("999999999]", "1000000000]");
  refused("\"size\":9223372036854775807", "\"size\":9223372036854775808");
  refused("\"parents\":[1,9]", "\"parents\":[]");
  refused("\"target\":\"\"", "\"target\":\"x\"");
  refused("\"map\":[[0,", "\"map\":[[2,");
  refused("\"map\":[[0,1,", "\"map\":[[0,140737488355327,");
  refused("\"AA==\"", "\"AA\"");
  refused("\"xattrs\":[", "\"xattrs\":[[],");
  CHECK_FALSE(DumpReader().read(with_checksum("{\"directory\":1,\"names\":[[\"a/b\",2,\"file\"]]")));
  CHECK_FALSE(DumpReader().read(with_checksum("{\"directory\":1,\"names\":[[\"..\",2,\"file\"]]")));
  const auto first_line = [&](const std::string& object_size) {
    return with_checksum("{\"lccfs_dump\":1,\"uuid\":\"u\",\"label\":\"\",\"object_size\":" + object_size +
                         ",\"next_number\":20,\"time\":[0,0]");
  };
  CHECK(DumpReader().read(first_line("65536")));
  for (const char* size : {"0", "32768", "65537", "67108864"}) CHECK_FALSE(DumpReader().read(first_line(size)));
  const auto newer = DumpReader().read(with_checksum("{\"lccfs_dump\":2"));
  CHECK((!newer && newer.error().code == ErrorCode::unsupported));
}

TEST_CASE("space is that of all below, and a file with several names counts once") {
  HandMadeVolume volume;
  volume.put_entry(root_ino, "linked", file, FileType::regular);
  auto attr = HandMadeVolume::attr_for(file, FileType::regular);
  attr.nlink = 2;
  attr.flags = format::attr_flag::user_attributes;
  volume.set("Inode.11", "attr", attr);
  format::MapBlock there;
  there.may_exist = there.believed_there = 3;
  volume.edit("Inode.11", [&there](MetaObject& o) { o.keys[format::map_key(0)] = encode(there); });
  const auto usage = need(survey::measure_usage(*volume.store, super_of(*volume.store), root_ino, {}));
  REQUIRE(usage.size() == 3);
  CHECK(usage[0].space.bytes == object_size + 4096);
  CHECK(usage[0].space.apparent_bytes == object_size + 10 + 6);
  CHECK(usage[0].space.inodes == 6);
  CHECK((usage[1].name == "directory" && usage[2].name == "subdirectory" && usage[2].parent == 1));
}

/// A file with three names in one directory, and one in another.
std::set<std::string> why_paths_are_not_known(HandMadeVolume& volume) {
  const auto facts = need(survey::read_inode_facts(*volume.store, file));
  CHECK(facts.names.size() == 4);
  std::set<std::string> reasons;
  for (const auto& name : facts.names) {
    CHECK(name.path.empty());
    reasons.insert(name.path_not_known);
  }
  return reasons;
}

TEST_CASE("an inode's paths ask an object that does not answer once, and tell of it") {
  HandMadeVolume volume;
  for (const char* name : {"second", "third"}) volume.put_entry(directory, name, file, FileType::regular);
  volume.put_entry(subdirectory, "fourth", file, FileType::regular);
  volume.edit("Inode.11", [](MetaObject& o) { o.keys["p/15/2.78"] = marker; });
  unsigned asked = 0;
  volume.store->set_hook([&asked](const StepInfo& step) {
    if (step.object != "Inode.1") return Fault{};
    ++asked;
    return Fault{Fault::Kind::fail, ErrorCode::timed_out};
  });
  const auto reasons = why_paths_are_not_known(volume);
  CHECK(asked == 1);
  REQUIRE(reasons.size() == 1);
  CHECK(reasons.begin()->contains("Inode.1"));
}

TEST_CASE("who has an inode open is not known of a directory that is not dead, for which nobody is asked") {
  HandMadeVolume volume;
  CHECK_FALSE(need(survey::read_inode_facts(*volume.store, directory)).open_at);
  CHECK(need(survey::read_inode_facts(*volume.store, file)).open_at);
}

TEST_CASE("a path through a directory that is not there is none, through a damaged one it is not known") {
  HandMadeVolume volume;
  const auto name_of_file = [&volume] { return need(survey::read_inode_facts(*volume.store, file)).names.front(); };
  CHECK(name_of_file().path == "/directory/file");
  volume.edit("Inode.1", [](MetaObject& o) { o.keys.erase(format::reverse_key(directory, "directory")); });
  CHECK((name_of_file().path.empty() && name_of_file().path_not_known.empty()));
  volume.edit("Inode.10", [](MetaObject& o) { o.xattrs["attr"] = "?"; });
  CHECK(name_of_file().path_not_known.contains("Inode.10"));
}

TEST_CASE("whatever bytes an object holds, what looks at it ends with a word about it") {
  std::mt19937 random(11);
  for (unsigned run = 0; run < 200; ++run) {
    HandMadeVolume volume;
    const auto super = super_of(*volume.store);
    const auto object =
        std::vector<std::string>{"Inode.1", "Inode.10", "Inode.11", "Inode.12", "Inode.14"}[random() % 5];
    volume.edit(object, [&random](MetaObject& o) {
      auto& parts = random() % 2 == 0 || o.keys.empty() ? o.xattrs : o.keys;
      auto part = parts.begin();
      std::advance(part, random() % parts.size());
      if (random() % 3 == 0) {
        part->second = std::string(random() % 100 + 1, static_cast<char>(random()));
      } else {
        part->second[random() % part->second.size()] ^= static_cast<char>(1U << random() % 8);
      }
    });
    std::vector<std::string> words;
    survey::UsageOptions how;
    how.on_damage = [&words](const std::string& what) { words.push_back(what); };
    const auto usage = survey::measure_usage(*volume.store, super, root_ino, how);
    if (!usage) words.push_back(usage.error().context);
    for (const std::uint64_t ino : {1, 10, 11, 12, 14}) {
      const auto facts = survey::read_inode_facts(*volume.store, Ino{ino});
      if (!facts) words.push_back(facts.error().context);
    }
    FakeClock clock;
    survey::DumpOptions dumping;
    dumping.on_line = [](const std::string&) -> Result<> { return {}; };
    const auto dumped = survey::dump_volume(*volume.store, super, clock, dumping);
    if (!dumped) words.push_back(dumped.error().context);
    for (const auto& word : words) CHECK(word.contains("Inode."));
  }
}

}  // namespace
}  // namespace lccfs::test
