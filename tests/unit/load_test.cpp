// SPDX-License-Identifier: LGPL-2.1-or-later
// A dump into an empty volume: what is refused before anything is changed, and each step, cut and beside a rival.
#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "format/features.h"
#include "load_fixture.h"
#include "survey/dump_lines.h"
#include "survey/paths.h"
#include "txn/repair_txn.h"

namespace lccfs::test {
namespace {

std::uint64_t next_number(ObjectStore& store) {
  const auto alloc = need(objects::read_object(objects::reader_of(store), {.object = "Alloc", .xattrs = true}));
  return need(alloc.needed<format::NumberRecord>(format::xattr::next)).value;
}

/// Nothing was changed: every step is counted.
void check_refused(EmptyVolume& volume, const std::string& dump, ErrorCode code, const std::string& why) {
  volume.store->reset_record();
  const auto refused = load(*volume.store, dump);
  REQUIRE_FALSE(refused);
  INFO(refused.error().context);
  CHECK((refused.error().code == code && refused.error().context.contains(why)));
  CHECK(volume.store->counts().applies == 0);
}

/// As DumpWriter would have them; what it would never write among them.
std::string dump_with(const std::vector<survey::DumpLine>& lines) {
  survey::DumpWriter writer;
  std::string text;
  for (const auto& line : lines) text += writer.line(line);
  return text;
}

txn::LoadedInode inode_of(Ino ino, FileType type) {
  txn::LoadedInode inode;
  inode.ino = ino;
  inode.attr.type = type;
  inode.attr.birth_token = txn::token_of_load;
  if (ino != root_ino) inode.parents = {root_ino};
  return inode;
}

TEST_CASE("a dump has what has a path, and is loaded as it was") {
  HandMadeVolume volume;
  const auto dump = dump_of(*volume.store);
  CHECK(std::ranges::count(dump, '\n') == 10);  // first and last line, 6 inodes, 2 directories with names
  CHECK_FALSE(dump.contains("\"inode\":13"));   // unlinked
  CHECK_FALSE(dump.contains("\"inode\":50"));   // never had a name
  EmptyVolume empty;
  const auto loaded = load(*empty.store, dump);
  REQUIRE(loaded);
  CHECK(loaded->inodes == 6);
  CHECK(need(check_volume(*empty.store)).empty());
  const auto again = dump_of(*empty.store);
  const auto lines_of = [](const std::string& text) {
    std::multiset<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.insert(line.substr(0, line.find(",\"crc32c\"")));
    lines.erase(lines.find(*std::ranges::find_if(lines, [](const auto& line) { return line.contains("lccfs_dump"); })));
    return lines;
  };
  const auto inodes_of = [&](const std::string& text) {
    auto lines = lines_of(text);
    std::erase_if(lines, [](const std::string& line) { return line.contains("\"directory\":"); });
    return lines;
  };
  CHECK(inodes_of(again) == inodes_of(dump));
  CHECK(need(survey::find_inode(objects::reader_of(*empty.store), super_of(*empty.store).uuid, "/directory//file")) ==
        file);
}

TEST_CASE("after a load no number is given under which data objects lie") {
  HandMadeVolume volume;
  EmptyVolume empty;
  need(empty.store->apply({"Data.5000.3", "put", {}, {mutation::CreateExclusive{}}}));
  REQUIRE(load(*empty.store, dump_of(*volume.store)));
  const auto alloc = need(objects::read_object(objects::reader_of(*empty.store), {.object = "Alloc", .xattrs = true}));
  CHECK(need(alloc.needed<format::NumberRecord>(format::xattr::next)).value == 5001);
}

TEST_CASE("data objects that are there are counted: those that the dump does not know are for a repair") {
  HandMadeVolume volume;
  EmptyVolume empty;
  const auto dump = dump_of(*volume.store);
  empty.cluster->with_objects([](scripted::Objects& objects) {
    for (const char* object : {"Data.11.0", "Data.11.7"}) objects.write(object, 0, "bytes");
  });
  CHECK(need(load(*empty.store, dump)).data_objects == 2);
  using Kind = Finding::Kind;
  std::set<Kind> found;
  for (const auto& finding : need(check_volume(*empty.store))) found.insert(finding.kind);
  CHECK(found == std::set{Kind::unmapped_data, Kind::data_past_size});
  EmptyVolume without;
  CHECK(need(load(*without.store, dump)).data_objects == 0);
}

TEST_CASE("only an empty volume of the same object size is loaded") {
  HandMadeVolume volume;
  const auto dump = dump_of(*volume.store);
  const auto used = load(*volume.store, dump);
  CHECK((!used && used.error().code == ErrorCode::exists));
  CHECK(volume.findings().empty());
  EmptyVolume empty;
  auto other = dump;
  CHECK_FALSE(load(*empty.store, ""));
  CHECK_FALSE(load(*empty.store, other.substr(0, other.size() / 2)));
  CHECK(need(check_volume(*empty.store)).empty());
  CHECK(load(*empty.store, dump));
  CHECK_FALSE(load(*empty.store, dump));
}

TEST_CASE("a load that is cut anywhere leaves a volume that is refused, until it is loaded") {
  HandMadeVolume volume;
  const auto dump = dump_of(*volume.store);
  for (const auto last : {Fault::Kind::fail, Fault::Kind::lost_answer_applied}) {
    bool all_were_cut = false;
    for (unsigned cut = 0; !all_were_cut; ++cut) {
      EmptyVolume empty;
      unsigned steps = 0;
      empty.store->set_hook([&](const StepInfo& info) -> Fault {
        if (info.kind != StepKind::apply || steps++ < cut) return {};
        return {steps == cut + 1 ? last : Fault::Kind::fail};
      });
      const auto loaded = load(*empty.store, dump);
      empty.store->set_hook(nullptr);
      all_were_cut = loaded.has_value();
      const auto super = objects::read_super(objects::reader_of(*empty.store));
      if (super) {  // as mkfs has made it, or all of it
        CHECK(need(check_volume(*empty.store)).empty());
        CHECK((cut == 0 || dump_of(*empty.store).size() == dump.size()));
        continue;
      }
      CHECK(super.error().code == ErrorCode::unsupported);
      CHECK(load(*empty.store, dump));
      CHECK(need(check_volume(*empty.store)).empty());
    }
  }
}

TEST_CASE("a dump of a volume in use may have inodes whose numbers were given after it had begun") {
  const survey::DumpLine header = survey::DumpHeader{"uuid", "", object_size, 20, now};
  const survey::DumpedEntries name{root_ino, {{"name", Ino{25}, FileType::regular}}};
  EmptyVolume empty;
  need(load(*empty.store, dump_with({header, inode_of(root_ino, FileType::directory),
                                     inode_of(Ino{25}, FileType::regular), name, survey::DumpEnd{2, 1}})));
  CHECK(need(check_volume(*empty.store)).empty());
}

TEST_CASE("all of a dump is checked before anything is changed") {
  using survey::DumpEnd;
  using survey::DumpLine;
  const DumpLine header = survey::DumpHeader{"uuid", "", object_size, 20, now};
  const DumpLine root = inode_of(root_ino, FileType::directory), one = inode_of(Ino{11}, FileType::regular);
  const auto names = [](Ino where, Ino ino, FileType type) {
    return DumpLine(survey::DumpedEntries{where, {{"name", ino, type}}});
  };
  const DumpLine name = names(root_ino, Ino{11}, FileType::regular);
  EmptyVolume empty;
  const auto refused = [&](const std::vector<DumpLine>& lines, const std::string& why) {
    check_refused(empty, dump_with(lines), ErrorCode::invalid, why);
  };
  refused({header, root, one, name}, "cut short");
  refused({header, header, root, DumpEnd{1, 0}}, "a second first line");
  refused({root, DumpEnd{1, 0}}, "the first line is missing");
  refused({header, one, root, DumpEnd{2, 0}}, "the root is not the first inode");
  const Ino beyond_all{format::numbers_end - 1};
  refused({header, root, inode_of(beyond_all, FileType::regular), DumpEnd{2, 0}}, "inode is out of range");
  refused({header, root, one, one, DumpEnd{3, 0}}, "has a line already");
  refused({header, root, names(Ino{11}, root_ino, FileType::directory), DumpEnd{1, 0}}, "its directory has no line");
  refused({header, root, one, names(Ino{11}, Ino{11}, FileType::regular), DumpEnd{2, 0}}, "its directory has no line");
  refused({header, root, name, one, DumpEnd{2, 0}}, "it names an inode that has no line");
  refused({header, root, one, names(root_ino, Ino{11}, FileType::directory), DumpEnd{2, 0}}, "a wrong type");
  refused({header, root, one, name, DumpEnd{1, 0}}, "the number of inodes is wrong");
  refused({header, DumpEnd{0, 0}}, "the number of inodes is wrong");
  refused({header, root, one, name, DumpEnd{2, 0}, DumpEnd{2, 0}}, "no line after the last one");
  REQUIRE(load(*empty.store, dump_with({header, root, one, name, DumpEnd{2, 0}})));
  CHECK(need(check_volume(*empty.store)).empty());
  CHECK(next_number(*empty.store) == 20);
}

TEST_CASE("a name to which its inode does not point back is left out of the volume, and counted") {
  using survey::DumpEnd;
  using survey::DumpLine;
  const DumpLine header = survey::DumpHeader{"uuid", "", object_size, 20, now};
  const DumpLine root = inode_of(root_ino, FileType::directory), one = inode_of(Ino{11}, FileType::regular);
  const auto names = [](Ino where, const char* name, Ino ino, FileType type) {
    return DumpLine(survey::DumpedEntries{where, {{name, ino, type}}});
  };
  const Ino below{10};
  const DumpLine place = inode_of(below, FileType::directory),
                 name_of_place = names(root_ino, "place", below, FileType::directory),
                 name = names(root_ino, "name", Ino{11}, FileType::regular),
                 elsewhere = names(below, "name", Ino{11}, FileType::regular);
  auto linked = inode_of(Ino{11}, FileType::regular);
  linked.attr.nlink = 2;
  EmptyVolume target;
  const auto loaded_with_one_left_out = [&target](const std::vector<DumpLine>& lines) {
    const auto loaded = need(load(*target.store, dump_with(lines)));
    CHECK(loaded.names_left_out == 1);
    return loaded;
  };
  SECTION("a second one of a file with one link") {
    loaded_with_one_left_out({header, root, place, one, name_of_place, name, elsewhere, DumpEnd{3, 0}});
  }
  SECTION("in a directory that is none of its parents") {
    loaded_with_one_left_out({header, root, place, linked, name_of_place, name, elsewhere, DumpEnd{3, 0}});
  }
  SECTION("beside one in the same directory") {
    const survey::DumpedEntries both{root_ino,
                                     {{"name", Ino{11}, FileType::regular}, {"too", Ino{11}, FileType::regular}}};
    loaded_with_one_left_out({header, root, one, both, DumpEnd{2, 0}});
  }
  SECTION("a second one of a directory") {
    const auto second = names(root_ino, "too", below, FileType::directory);
    loaded_with_one_left_out({header, root, place, name_of_place, second, DumpEnd{2, 0}});
  }
  SECTION("one of the root") {
    loaded_with_one_left_out({header, root, names(root_ino, "root", root_ino, FileType::directory), DumpEnd{1, 0}});
  }
  SECTION("the only one: its file is there for a repair, and told") {
    const auto loaded = loaded_with_one_left_out({header, root, place, one, name_of_place, elsewhere, DumpEnd{3, 0}});
    CHECK(loaded.without_name == 1);
    const auto found = need(check_volume(*target.store));
    REQUIRE(found.size() == 1);
    CHECK((found.front().kind == Finding::Kind::orphan && found.front().ino == Ino{11}));
    return;
  }
  for (const auto& finding : need(check_volume(*target.store))) FAIL_CHECK(finding.text);
}

TEST_CASE("what a load would refuse is left out of the dump and named, and the rest is loaded") {
  HandMadeVolume volume;
  std::string word;
  std::uint64_t loaded_inodes = 5;
  SECTION("a symlink without its target") {
    volume.edit("Inode.12", [](MetaObject& o) { o.payload.clear(); });
    word = "Inode.12: target is missing";
  }
  SECTION("a symlink with more than a target") {
    volume.edit("Inode.12", [](MetaObject& o) { o.payload.assign(format::symlink_limit_bytes + 1, 'x'); });
    word = "Inode.12: target is missing, too long";
  }
  SECTION("a value of an extended attribute that is too long, alone") {
    volume.edit("Inode.10",
                [](MetaObject& o) { o.keys["u/user.x"] = std::string(format::attribute_value_limit_bytes + 2, '\1'); });
    word = "Inode.10: key u/user.x: ";
    loaded_inodes = 6;
  }
  SECTION("an extended attribute's name that is too long, alone") {
    volume.edit("Inode.10",
                [](MetaObject& o) { o.keys["u/" + std::string(format::attribute_name_limit_bytes + 1, 'x')] = "\1x"; });
    word = "Inode.10: key u/xxx";
    loaded_inodes = 6;
  }
  SECTION("a name for the directory above") {
    volume.put_entry(directory, "..", orphan, FileType::regular);
    word = "Inode.10: " + volume.key("..") + ": not the key of a name";
    loaded_inodes = 6;
  }
  SECTION("a block of the map that no file reaches") {
    volume.edit("Inode.11", [](MetaObject& o) {
      format::MapBlock block;
      block.may_exist.set(0);
      o.keys[format::map_key(std::uint64_t{1} << 54)] = encode(block);
    });
    word = "Inode.11: key m/0040000000000000";
  }
  std::vector<std::string> words;
  const auto dump = dump_of(*volume.store, words);
  REQUIRE(words.size() == 1);
  CHECK(words.front().starts_with(word));
  EmptyVolume target;
  const auto loaded = need(load(*target.store, dump));
  CHECK((loaded.inodes == loaded_inodes && loaded.left_out == 1));
  CHECK(need(check_volume(*target.store)).empty());
}

TEST_CASE("a block of the map that objects of the volume's size do not reach keeps its file out of a dump") {
  HandMadeVolume volume;
  auto super = super_of(*volume.store);
  super.object_size_bytes *= 2;
  volume.set("Super", "super", super);
  format::MapBlock block;
  block.may_exist.set(0);
  volume.edit("Inode.11", [&](MetaObject& o) { o.keys[format::map_key(std::uint64_t{1} << 36)] = encode(block); });
  std::vector<std::string> words;
  const auto dump = dump_of(*volume.store, words);
  CHECK(words == std::vector<std::string>{"Inode.11: map is out of range"});
  CHECK_FALSE(dump.contains("\"inode\":11"));
}

TEST_CASE("a file that is removed while a dump reads it is left out without a word") {
  HandMadeVolume volume;
  volume.edit("Inode.11", [](MetaObject& o) {
    auto attr = need(format::decode<format::AttrRecord>(o.xattrs.at(format::xattr::attr)));
    attr.nlink = 2;
    o.xattrs[format::xattr::attr] = encode(attr);
  });
  unsigned reads = 0;
  volume.store->set_hook([&volume, &reads](const StepInfo& info) {
    const bool is_second = info.kind == StepKind::query && info.object == "Inode.11" && ++reads == 2;
    if (is_second)
      volume.cluster->with_objects([](scripted::Objects& objects) { objects.metadata().erase("Inode.11"); });
    return Fault{};
  });
  const auto dump = dump_of(*volume.store);
  CHECK(reads == 2);
  CHECK_FALSE(dump.contains("\"inode\":11"));
  CHECK(dump.contains("\"inode\":12"));
}

/// Before the names of that directory are read.
ScriptedClient::Hook before_names_of(Ino where, std::function<void()> act) {
  return [where, act = std::move(act), done = false](const StepInfo& info) mutable {
    const bool is_it = info.kind == StepKind::query && info.object == format::inode_object(where) &&
                       !info.read->ranges.empty() && info.read->ranges.front().prefix == "n/";
    if (is_it && !std::exchange(done, true)) act();
    return Fault{};
  };
}

/// The file has so many links, and points back to that directory, too.
void point_back(HandMadeVolume& volume, std::uint32_t links, Ino where) {
  volume.edit("Inode.11", [&](MetaObject& o) {
    auto attr = need(format::decode<format::AttrRecord>(o.xattrs.at(format::xattr::attr)));
    attr.nlink = links;
    o.xattrs[format::xattr::attr] = encode(attr);
    o.keys[format::back_pointer_key(where, Token{me, 90})] = marker;
  });
}

/// What the dump's volume becomes has a file with that many links, which points back to these alone.
void check_file_of(const std::string& dump, std::uint32_t links, const std::set<Ino>& parents) {
  EmptyVolume target;
  need(load(*target.store, dump));
  for (const auto& finding : need(check_volume(*target.store))) FAIL_CHECK(finding.text);
  const auto loaded = need(objects::read_inode(objects::reader_of(*target.store), file, {.traces = true}));
  CHECK(loaded.attr.nlink == links);
  std::set<Ino> found;
  for (const auto& pointer : loaded.pointers) found.insert(pointer.parent);
  CHECK(found == parents);
}

TEST_CASE("a link that is made once its file's line is written is not in the dump") {
  HandMadeVolume volume;
  const bool has_two = GENERATE(false, true);
  if (has_two) {
    point_back(volume, 2, root_ino);
    volume.put_entry(root_ino, "first", file, FileType::regular);
  }
  volume.store->set_hook(before_names_of(subdirectory, [&] {
    point_back(volume, has_two ? 3 : 2, subdirectory);
    volume.put_entry(subdirectory, "made since", file, FileType::regular);
  }));
  const auto dump = dump_of(*volume.store);
  CHECK(volume.findings().empty());
  CHECK_FALSE(dump.contains("made since"));
  if (has_two) check_file_of(dump, 2, {root_ino, directory});
  if (!has_two) check_file_of(dump, 1, {directory});
}

TEST_CASE("a link that is moved to another directory once its file's line is written is not in the dump") {
  HandMadeVolume volume;
  point_back(volume, 2, root_ino);
  volume.put_entry(root_ino, "first", file, FileType::regular);
  volume.store->set_hook(before_names_of(directory, [&] {
    point_back(volume, 2, subdirectory);
    volume.drop_entry(directory, "file", file);
    volume.put_entry(subdirectory, "moved since", file, FileType::regular);
  }));
  const auto dump = dump_of(*volume.store);
  CHECK(dump.contains("\"links\":2"));
  CHECK_FALSE(dump.contains("moved since"));
  check_file_of(dump, 1, {root_ino});
}

TEST_CASE("a name to which its file does not point back is left out of the dump, and told") {
  HandMadeVolume volume;
  volume.edit("Inode.11", [](MetaObject& o) {
    auto attr = HandMadeVolume::attr_for(file, FileType::regular);
    attr.nlink = 2;
    o.xattrs[format::xattr::attr] = encode(attr);
  });
  volume.put_entry(subdirectory, "damaged", file, FileType::regular);
  std::vector<std::string> words;
  const auto dump = dump_of(*volume.store, words);
  CHECK(words == std::vector<std::string>{"Inode.15: name damaged: Inode.11 does not point back to it"});
  check_file_of(dump, 1, {directory});
}

TEST_CASE("a name without its reverse key is left out of the dump, and told") {
  HandMadeVolume volume;
  point_back(volume, 2, subdirectory);
  volume.put_entry(subdirectory, "damaged", file, FileType::regular);
  volume.edit("Inode.15", [](MetaObject& o) { o.keys.erase(format::reverse_key(file, "damaged")); });
  std::vector<std::string> words;
  const auto dump = dump_of(*volume.store, words);
  CHECK(words == std::vector<std::string>{"Inode.15: name damaged: it has no reverse key"});
  check_file_of(dump, 1, {directory});
}

/// A file that is cut once it was read to its end.
class CutBehindReader : public std::stringbuf {
 public:
  CutBehindReader(const std::string& whole, std::string rest) : std::stringbuf(whole), rest_(std::move(rest)) {}

 protected:
  pos_type seekpos(pos_type position, std::ios_base::openmode which) override {
    if (in_avail() <= 0) str(rest_);
    return std::stringbuf::seekpos(position, which);
  }

 private:
  const std::string rest_;
};

TEST_CASE("a dump that gets shorter once it was checked is not loaded as a whole one") {
  HandMadeVolume volume;
  const auto whole = dump_of(*volume.store);
  const auto last_line = whole.rfind('\n', whole.size() - 2) + 1;
  EmptyVolume target;
  CutBehindReader file(whole, whole.substr(0, last_line));
  std::istream dump(&file);
  const auto refused = survey::load_volume(*target.store, dump, {.jobs = 1});
  REQUIRE_FALSE(refused);
  INFO(refused.error().context);
  CHECK((refused.error().code == ErrorCode::invalid && refused.error().context.contains("changed while")));
  CHECK_FALSE(objects::read_super(objects::reader_of(*target.store)));  // still only load takes it
  CHECK(load(*target.store, whole));
  CHECK(need(check_volume(*target.store)).empty());
}

TEST_CASE("a second link in a directory in which its file had one is loaded, and counted") {
  HandMadeVolume volume;
  point_back(volume, 2, root_ino);
  volume.put_entry(root_ino, "first", file, FileType::regular);
  volume.store->set_hook(before_names_of(directory, [&] {
    point_back(volume, 3, root_ino);
    volume.put_entry(directory, "made since", file, FileType::regular);
  }));
  const auto dump = dump_of(*volume.store);
  CHECK(dump.contains("made since"));
  check_file_of(dump, 3, {root_ino, directory});
}

TEST_CASE("a file does not point back to a directory that the dump has left out") {
  using survey::DumpedEntries;
  const Ino left_out{5};
  auto inode = inode_of(file, FileType::regular);
  inode.parents = {left_out, directory};
  EmptyVolume target;
  need(load(*target.store,
            dump_with({survey::DumpHeader{"uuid", "", object_size, 20, now}, inode_of(root_ino, FileType::directory),
                       inode_of(directory, FileType::directory),
                       DumpedEntries{root_ino, {{"directory", directory, FileType::directory}}}, inode,
                       DumpedEntries{directory, {{"file", file, FileType::regular}}}, survey::DumpEnd{3, 1}})));
  const auto loaded = need(objects::read_inode(objects::reader_of(*target.store), file, {.traces = true}));
  REQUIRE(loaded.pointers.size() == 1);
  CHECK(loaded.pointers.front().parent == directory);
  CHECK(need(check_volume(*target.store)).empty());
}

TEST_CASE("a volume that an older program has made has all features before anything is loaded into it") {
  HandMadeVolume volume;
  EmptyVolume target;
  auto super = super_of(*target.store);
  const auto all = super.incompat;
  super.incompat = format::feature::moves;
  need(target.store->apply({"Super", "set", {}, {mutation::SetXattr{"super", encode(super)}}}));
  target.store->set_hook(once_on("load inode", {Fault::Kind::fail}));
  CHECK_FALSE(load(*target.store, dump_of(*volume.store)));
  const auto found = need(target.store->query({.object = "Super", .xattrs = true}));
  const auto begun = need(format::decode<format::SuperRecord>(found.xattrs.at("super")));
  CHECK(begun.incompat == (all | format::being_loaded));
  REQUIRE(load(*target.store, dump_of(*volume.store)));
  CHECK(super_of(*target.store).incompat == all);
}

TEST_CASE("the map of a huge file is loaded in several steps, and is whole") {
  auto huge = inode_of(Ino{11}, FileType::regular);
  huge.size_bytes = format::file_size_limit_bytes;
  for (std::uint64_t block = 0; block < 10'000; ++block) huge.map_blocks[block].may_exist.set(block % 1024);
  const survey::DumpedEntries name{root_ino, {{"name", Ino{11}, FileType::regular}}};
  EmptyVolume target;
  unsigned further_steps = 0;
  target.store->set_hook([&further_steps](const StepInfo& info) {
    if (info.step == "load map") ++further_steps;
    return Fault{};
  });
  need(load(*target.store, dump_with({survey::DumpHeader{"uuid", "", object_size, 20, now},
                                      inode_of(root_ino, FileType::directory), huge, name, survey::DumpEnd{2, 0}})));
  const auto loaded =
      need(objects::read_inode(objects::reader_of(*target.store), Ino{11}, {.map = objects::InodeParts::Map::whole}));
  CHECK(loaded.map.blocks() == huge.map_blocks);
  CHECK(further_steps == 2);
  target.cluster->with_objects(
      [](scripted::Objects& objects) { CHECK(objects.metadata().at("Inode.11").keys.size() == 10'000); });
}

TEST_CASE("attributes that no store takes in one step are loaded in several, and all of them") {
  auto inode = inode_of(Ino{11}, FileType::regular);
  const bool are_long = GENERATE(true, false);
  const unsigned count = are_long ? 40 : 150;
  for (unsigned i = 0; i < count; ++i) {
    inode.attributes["user." + std::to_string(i)] = Bytes(are_long ? format::attribute_value_limit_bytes : 1, 'x');
  }
  const survey::DumpedEntries name{root_ino, {{"name", Ino{11}, FileType::regular}}};
  EmptyVolume target;
  std::size_t most_bytes = 0, most_keys = 0;
  target.store->set_hook([&](const StepInfo& info) {
    if (info.txn == nullptr) return Fault{};
    std::size_t bytes = 0, keys = 0;
    for (const auto& one : info.txn->mutations) {
      if (const auto* set = std::get_if<mutation::SetKey>(&one)) bytes += set->value.size(), ++keys;
    }
    most_bytes = std::max(most_bytes, bytes);
    most_keys = std::max(most_keys, keys);
    return Fault{};
  });
  need(load(*target.store, dump_with({survey::DumpHeader{"uuid", "", object_size, 20, now},
                                      inode_of(root_ino, FileType::directory), inode, name, survey::DumpEnd{2, 0}})));
  CHECK(most_bytes <= (1U << 20) + 100);
  CHECK(most_keys <= 64);
  target.cluster->with_objects([&](scripted::Objects& objects) {
    const auto& keys = objects.metadata().at("Inode.11").keys;
    CHECK(keys.size() == count);
    for (const auto& [attribute, value] : inode.attributes) CHECK(keys.at("u/" + attribute) == '\1' + value);
  });
  CHECK(need(check_volume(*target.store)).empty());
}

TEST_CASE("a dump holds few inodes in memory, however large a directory is") {
  constexpr unsigned files = 300;
  const auto store = ScriptedCluster::make({})->new_client();
  FakeClock clock;
  MakeVolumeOptions options;
  options.object_size_bytes = object_size;
  need(make_volume(*store, clock, options));
  std::vector<survey::DumpLine> lines{survey::DumpHeader{"uuid", "", object_size, 1000, now},
                                      inode_of(root_ino, FileType::directory)};
  survey::DumpedEntries names{root_ino, {}};
  for (unsigned i = 0; i < files; ++i) {
    auto inode = inode_of(Ino{11 + i}, FileType::regular);
    for (unsigned n = 0; n < 20; ++n) inode.attributes["user." + std::to_string(n)] = "x";
    names.names.push_back({std::to_string(i), inode.ino, FileType::regular});
    lines.emplace_back(std::move(inode));
  }
  lines.emplace_back(names);
  lines.emplace_back(survey::DumpEnd{files + 1, 0});
  const auto text = dump_with(lines);
  need(load(*store, text));
  unsigned inodes_ahead = 0, most_ahead = 0;
  std::uint32_t most_attributes = 0;
  store->set_hook([&](const StepInfo& info) {
    if (info.read == nullptr) return Fault{};
    if (info.read->payload) most_ahead = std::max(most_ahead, ++inodes_ahead);
    for (const auto& range : info.read->ranges) {
      if (range.prefix == "u/") most_attributes = std::max(most_attributes, range.limit);
    }
    return Fault{};
  });
  survey::DumpOptions how{.jobs = 1, .on_line = {}};
  how.on_line = [&](const std::string& line) -> Result<> {
    if (line.contains("\"inode\":")) --inodes_ahead;
    return {};
  };
  CHECK(need(survey::dump_volume(*store, super_of(*store), clock, how)) == 0);
  CHECK(most_ahead == 128);
  CHECK(most_attributes == 16);
}

TEST_CASE("a volume that holds anything, or is used, is left as it is") {
  HandMadeVolume volume;
  const auto dump = dump_of(*volume.store);
  EmptyVolume target;
  const auto apply = [&target](const MetaTxn& txn) { need(target.store->apply(txn)); };
  SECTION("a client's record") {
    apply(txn::add_instance_record(me, encode(format::InstanceRecord{})));
    check_refused(target, dump, ErrorCode::exists, "in use, or was");
  }
  SECTION("a client's session, whose record is gone") {
    apply(txn::make_session(me));
    check_refused(target, dump, ErrorCode::exists, "there is Session.2 in the volume");
  }
  SECTION("an inode") {
    apply({"Inode.99", "put", {}, {mutation::CreateExclusive{}}});
    check_refused(target, dump, ErrorCode::exists, "there is Inode.99 in the volume");
  }
  SECTION("a name in the root") {
    apply({"Inode.1", "put", {}, {mutation::SetKey{"n/0000000000000005/f", "x"}}});
    check_refused(target, dump, ErrorCode::exists, "root is not empty");
  }
}

TEST_CASE("objects of another size would be other bytes of the files") {
  HandMadeVolume volume;
  EmptyVolume target;
  auto super = super_of(*target.store);
  super.object_size_bytes *= 2;
  need(target.store->apply({"Super", "set", {}, {mutation::SetXattr{"super", encode(super)}}}));
  check_refused(target, dump_of(*volume.store), ErrorCode::invalid, "objects of 65536 bytes, this one has 131072");
}

TEST_CASE("who changes the volume between the look at it and a load's first or last step is not overrun") {
  HandMadeVolume volume;
  const auto dump = dump_of(*volume.store);
  EmptyVolume target;
  const auto rival = target.cluster->new_client();
  target.store->reset_record();
  SECTION("a client that registers before the first step") {
    target.store->set_hook(before(
        "set features", [&] { need(rival->apply(txn::add_instance_record(me, encode(format::InstanceRecord{})))); }));
    const auto refused = load(*target.store, dump);
    CHECK((!refused && refused.error().code == ErrorCode::busy));
    CHECK(target.store->counts().applies == 1);
    CHECK(need(target.store->list("")).names.size() == 3);
  }
  SECTION("a program that changes the volume's record before the last step") {
    unsigned steps = 0;
    target.store->set_hook([&](const StepInfo& info) {
      if (info.step != "set features" || ++steps != 2) return Fault{};
      auto found = need(rival->query({.object = "Super", .xattrs = true}));
      auto record = need(format::decode<format::SuperRecord>(found.xattrs["super"]));
      record.label = "changed";
      need(rival->apply({"Super", "set", {}, {mutation::SetXattr{"super", encode(record)}}}));
      return Fault{};
    });
    const auto refused = load(*target.store, dump);
    CHECK((!refused && refused.error().code == ErrorCode::busy));
    CHECK_FALSE(objects::read_super(objects::reader_of(*target.store)));  // still only load takes it
  }
}

TEST_CASE("a load that another one has overtaken stops, and changes nothing of the volume any more") {
  HandMadeVolume volume;
  const auto dump = dump_of(*volume.store);
  EmptyVolume target;
  const auto rival = target.cluster->new_client();
  const auto which = GENERATE("load inode", "drop object", "load entries");
  INFO(which);
  target.store->set_hook(once_on("load inode", {Fault::Kind::fail}));
  CHECK_FALSE(load(*target.store, dump));
  target.store->set_hook(before(which, [&] { CHECK(load(*rival, dump)); }));
  CHECK_FALSE(load(*target.store, dump));
  CHECK(need(check_volume(*target.store)).empty());
  CHECK(dump_of(*target.store).size() == dump.size());
}

/// What a load of `dump` leaves while one of its steps, the first of that name on that object, is under way; another load
/// ends meanwhile, a client acts on the volume, and then the step takes effect, or is refused.
void check_late_step(const std::string& dump, const std::string& step, Ino where,
                     const std::function<void(MetaObject&)>& act) {
  EmptyVolume target;
  const auto rival = target.cluster->new_client();
  target.store->set_hook([&, done = false](const StepInfo& info) mutable {
    const bool is_it = info.step == step && info.object == format::inode_object(where) && !std::exchange(done, true);
    return is_it ? Fault{Fault::Kind::crash_and_land_later} : Fault{};
  });
  CHECK_FALSE(load(*target.store, dump));
  REQUIRE(load(*rival, dump));
  const auto object = [&](const auto& work) {
    target.cluster->with_objects(
        [&](scripted::Objects& objects) { work(objects.metadata().at(format::inode_object(where))); });
  };
  object(act);
  MetaObject before;
  object([&before](const MetaObject& o) { before = o; });
  target.store->land_late_steps();
  object([&before](const MetaObject& o) { CHECK((o.keys == before.keys && o.xattrs == before.xattrs)); });
}

TEST_CASE("a step of a load that comes once another load has ended changes nothing of the volume") {
  HandMadeVolume volume;
  const auto dump = dump_of(*volume.store);
  const auto drop_names = [](MetaObject& o) {
    std::erase_if(o.keys, [](const auto& key) { return key.first.starts_with("n/") || key.first.starts_with("i/"); });
  };
  SECTION("names of the root") { check_late_step(dump, "load entries", root_ino, drop_names); }
  SECTION("names of another directory") { check_late_step(dump, "load entries", directory, drop_names); }
  SECTION("the last step of the root") {
    check_late_step(dump, "settle root", root_ino, [](MetaObject& o) {
      auto attr = need(format::decode<format::AttrRecord>(o.xattrs.at(format::xattr::attr)));
      attr.mode = 0700;
      o.xattrs[format::xattr::attr] = encode(attr);
    });
  }
  auto inode = inode_of(Ino{11}, FileType::regular);
  for (unsigned i = 0; i < 150; ++i) inode.attributes["user." + std::to_string(i)] = "x";
  for (std::uint64_t block = 0; block < 5'000; ++block) inode.map_blocks[block].may_exist.set(0);
  const auto one_file =
      dump_with({survey::DumpHeader{"uuid", "", object_size, 20, now}, inode_of(root_ino, FileType::directory), inode,
                 survey::DumpedEntries{root_ino, {{"name", Ino{11}, FileType::regular}}}, survey::DumpEnd{2, 0}});
  const auto drop_keys = [](MetaObject& o) { o.keys.clear(); };
  SECTION("a part of a map") { check_late_step(one_file, "load map", Ino{11}, drop_keys); }
  SECTION("extended attributes") { check_late_step(one_file, "load attributes", Ino{11}, drop_keys); }
}

TEST_CASE("each load marks what it makes with a token of its own, but for the root") {
  HandMadeVolume volume;
  EmptyVolume target;
  const auto birth_of = [&target](Ino ino) {
    const auto found = need(target.store->query({.object = format::inode_object(ino), .xattrs = true}));
    return need(format::decode<format::AttrRecord>(found.xattrs.at(format::xattr::attr))).birth_token;
  };
  const auto dump = dump_of(*volume.store);
  target.store->set_hook(once_on("take numbers", {Fault::Kind::fail}));
  CHECK_FALSE(load(*target.store, dump));
  const auto first = birth_of(file);
  REQUIRE(load(*target.store, dump));
  CHECK(first.instance == InstanceId{0});
  CHECK(birth_of(file).instance == InstanceId{0});
  CHECK(birth_of(file) != first);
  CHECK(birth_of(root_ino) == txn::token_of_load);  // any other: a repair has made it anew
}

TEST_CASE("a load whose steps the store runs twice is done") {
  HandMadeVolume volume;
  const auto dump = dump_of(*volume.store);
  for (const char* step :
       {"set features", "drop object", "load inode", "load entries", "take numbers", "settle root"}) {
    bool was_there = true;
    for (unsigned twice = 0; was_there; ++twice) {
      INFO(step << " " << twice);
      EmptyVolume target;
      unsigned steps = 0;
      target.store->set_hook([&](const StepInfo& info) -> Fault {
        if (info.step != step || steps++ != twice) return {};
        return {Fault::Kind::applied_twice};
      });
      CHECK(load(*target.store, dump));
      CHECK(need(check_volume(*target.store)).empty());
      was_there = steps > twice;
      CHECK((was_there || twice > 0));
    }
  }
}

TEST_CASE("a load that was cut is completed by the same dump alone") {
  HandMadeVolume volume;
  const auto dump = dump_of(*volume.store);
  volume.drop_entry(root_ino, "leased", leased);
  const auto smaller = dump_of(*volume.store);
  EmptyVolume target;
  target.store->set_hook(once_on("take numbers", {Fault::Kind::fail}));
  CHECK_FALSE(load(*target.store, dump));
  const auto refused = load(*target.store, smaller);
  REQUIRE_FALSE(refused);
  CHECK((refused.error().code == ErrorCode::exists && refused.error().context.contains("another dump was loaded")));
  CHECK_FALSE(objects::read_super(objects::reader_of(*target.store)));
  EmptyVolume other;
  CHECK(load(*other.store, smaller));
  CHECK(need(check_volume(*other.store)).empty());
}

TEST_CASE("a directory that vanishes while a volume is loaded is not made anew by its names") {
  HandMadeVolume volume;
  EmptyVolume target;
  const auto rival = target.cluster->new_client();
  target.store->set_hook(before("load entries", [&rival] {
    const auto version = need(rival->query({.object = "Inode.10"})).version;
    need(rival->apply(txn::drop_object({"Inode.10", version})));
  }));
  CHECK_FALSE(load(*target.store, dump_of(*volume.store)));
  CHECK_FALSE(rival->query({.object = "Inode.10"}));
}

TEST_CASE("a file's link count is that of its names in the dump") {
  HandMadeVolume volume;
  auto attr = HandMadeVolume::attr_for(file, FileType::regular);
  attr.nlink = 3;  // a link was removed, or made, while the dump was written
  attr.flags = format::attr_flag::user_attributes;
  volume.set("Inode.11", "attr", attr);
  EmptyVolume target;
  REQUIRE(load(*target.store, dump_of(*volume.store)));
  CHECK(need(check_volume(*target.store)).empty());
}

}  // namespace
}  // namespace lccfs::test
