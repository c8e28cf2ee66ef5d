// SPDX-License-Identifier: LGPL-2.1-or-later
// Several names of one inode: what each call answers, what is counted, and what a refused link leaves.
#include <fcntl.h>

#include "support/catch.h"
#include "support/collecting.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

struct OneFile {
  TestVolume volume;
  Mount mount = volume.mount();
  FileSystem& fs = *mount.file_system;
  const Ino f = make_file(fs, root_ino, "f");
};

std::uint32_t links_of(FileSystem& fs, Ino ino) { return need(fs.get_attributes(ino)).attributes.nlink; }

bool points_back_by_key(TestVolume& volume, Ino ino) { return has_keys(*inode_object_of(volume.cluster(), ino), "p/"); }

/// Keys of that kind, in all objects whose names begin so.
std::size_t keys_of(TestVolume& volume, const std::string& objects, const std::string& prefix) {
  std::size_t found = 0;
  volume.cluster().with_objects([&](scripted::Objects& all) {
    for (const auto& [name, object] : all.metadata()) {
      if (!name.starts_with(objects)) continue;
      found += static_cast<std::size_t>(
          std::ranges::count_if(object.keys, [&](const auto& key) { return key.first.starts_with(prefix); }));
    }
  });
  return found;
}

void set_link_count(TestVolume& volume, Ino ino, std::uint32_t nlink) {
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    auto& raw = objects.metadata().at(format::inode_object(ino)).xattrs.at(format::xattr::attr);
    auto attr = need(format::decode<format::AttrRecord>(raw));
    attr.nlink = nlink;
    raw = format::encode(attr);
  });
}

}  // namespace

TEST_CASE("a link is one more name for the inode, in its directory or in another, of whatever is no directory") {
  TestVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  auto& fs = *mount.file_system;
  const auto directory = make_dir(fs, root_ino, "d");
  for (const auto type : {FileType::regular, FileType::symlink, FileType::fifo}) {
    const auto name = "of type " + std::to_string(static_cast<int>(type));
    const auto ino = need(fs.make_node({}, root_ino, name, {type, 0644, 0, "to"})).attributes.ino;
    CHECK(need(fs.link(ino, root_ino, name + ", again")).attributes.nlink == 2);
    CHECK(need(fs.link(ino, directory, name)).attributes.ino == ino);
    const auto seen = need(other->lookup(directory, name)).attributes;
    CHECK(seen.ino == ino);
    CHECK(seen.nlink == 3);
    CHECK(seen.type == type);
  }
  CHECK(names_in(fs, directory).size() == 3);
  CHECK(problems(volume.cluster()).empty());
}

TEST_CASE("what is written through one name is read through the other") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(mount->link(file.ino, root_ino, "g"));
  need(write_at(*mount.file_system, file.handle, 0, "bytes"));
  const auto g = *ino_of(*mount.file_system, root_ino, "g");
  CHECK(need(read_at(*mount.file_system, open_again(*mount.file_system, g), 0, 100)) == "bytes");
}

TEST_CASE("a link tells the size and the space that the file has now, whatever was looked up before it was written") {
  OneFile one;
  auto& [volume, mount, fs, f] = one;
  auto other = volume.mount();
  CHECK(need(fs.lookup(root_ino, "f")).attributes.size_bytes == 0);
  auto& writer = GENERATE(true, false) ? fs : *other.file_system;
  const auto handle = open_again(writer, f);
  need(write_at(writer, handle, 0, std::string(5000, 'x')));
  const auto told = need(fs.link(f, root_ino, "g")).attributes;
  CHECK(told.size_bytes == 5000);
  CHECK(told.nlink == 2);
  CHECK(need(fs.get_attributes(f)).attributes.blocks_512 == told.blocks_512);
  if (&writer == &fs) CHECK(told.blocks_512 != 0);
}

TEST_CASE("the count goes down with each name, and the file stays until the last") {
  OneFile one;
  auto& [volume, mount, fs, f] = one;
  const auto directory = make_dir(fs, root_ino, "d");
  need(fs.link(f, directory, "g"));
  need(fs.link(f, root_ino, "h"));
  need(fs.unlink(root_ino, "f"));
  CHECK(links_of(fs, f) == 2);
  make_file(fs, root_ino, "another");
  need(fs.rename(root_ino, "another", root_ino, "h", RenameMode::replace));
  CHECK(links_of(fs, f) == 1);
  collect(volume.cluster(), volume.clock());
  CHECK(*ino_of(fs, directory, "g") == f);
  need(fs.unlink(directory, "g"));
  need(fs.rmdir(root_ino, "d"));
  collect(volume.cluster(), volume.clock());
  CHECK_FALSE(inode_object_of(volume.cluster(), f));
  CHECK_FALSE(inode_object_of(volume.cluster(), directory));
  CHECK(names_in(fs, root_ino) == std::vector<std::string>{"h"});
}

TEST_CASE("a collector leaves one back-pointer for each directory that holds a name") {
  OneFile one;
  auto& [volume, mount, fs, f] = one;
  const auto directory = make_dir(fs, root_ino, "d");
  for (const auto* name : {"1", "2", "3"}) need(fs.link(f, directory, name));
  collect(volume.cluster(), volume.clock());
  const auto object = *inode_object_of(volume.cluster(), f);
  CHECK(std::ranges::count_if(object.keys, [](const auto& key) { return key.first.starts_with("p/"); }) == 1);
  CHECK(links_of(fs, f) == 4);
}

TEST_CASE("a rename of one name over another of the same inode changes nothing") {
  OneFile one;
  auto& [volume, mount, fs, f] = one;
  need(fs.link(f, root_ino, "g"));
  need(fs.rename(root_ino, "f", root_ino, "g", RenameMode::replace));
  CHECK(names_in(fs, root_ino) == std::vector<std::string>{"f", "g"});
  CHECK(links_of(fs, f) == 2);
}

TEST_CASE("a link is refused for a directory, a taken name, what has no name, and one name too many") {
  OneFile one;
  auto& [volume, mount, fs, f] = one;
  const auto directory = make_dir(fs, root_ino, "d");
  CHECK(error_of(fs.link(directory, root_ino, "e")) == ErrorCode::not_permitted);
  CHECK(error_of(fs.link(f, root_ino, "d")) == ErrorCode::exists);
  CHECK(error_of(fs.link(f, root_ino, "f")) == ErrorCode::exists);
  CHECK(error_of(fs.link(f, root_ino, std::string(256, 'x'))) == ErrorCode::name_too_long);
  CHECK(error_of(fs.link(f, f, "x")) == ErrorCode::not_directory);
  const auto opened = create_file(fs, "opened");
  need(fs.unlink(root_ino, "opened"));
  CHECK(error_of(fs.link(opened.ino, root_ino, "back")) == ErrorCode::not_found);
  set_link_count(volume, f, most_links);
  volume.clock().advance(std::chrono::seconds(2));
  CHECK(error_of(fs.link(f, root_ino, "g")) == ErrorCode::too_many_links);
  set_link_count(volume, f, 1);
  CHECK(names_in(fs, root_ino) == std::vector<std::string>{"d", "f"});
  CHECK_FALSE(points_back_by_key(volume, f));
}

TEST_CASE("a link of a directory to a name that another has just taken says that it is taken, as Linux does") {
  TestVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  const auto directory = make_dir(*mount.file_system, root_ino, "d");
  CHECK(error_of(mount->lookup(root_ino, "e")) == ErrorCode::not_found);
  make_file(*other.file_system, root_ino, "e");
  CHECK(error_of(mount->link(directory, root_ino, "e")) == ErrorCode::exists);
}

TEST_CASE("a link into a directory that another has removed is stale, and of a file that is gone") {
  OneFile one;
  auto& [volume, mount, fs, f] = one;
  auto other = volume.mount();
  const auto directory = make_dir(fs, root_ino, "d");
  need(other->rmdir(root_ino, "d"));
  CHECK(error_of(fs.link(f, directory, "g")) == ErrorCode::stale);
  need(other->unlink(root_ino, "f"));
  volume.clock().advance(std::chrono::seconds(2));
  collect(volume.cluster(), volume.clock());
  CHECK(error_of(fs.link(f, root_ino, "g")) == ErrorCode::stale);
}

TEST_CASE("a file that loses its last name and dies while it is linked gets no name, though it is open") {
  TestVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  auto third = volume.mount();
  const auto file = create_file(*other.file_system, "f");
  volume.clock().advance(std::chrono::minutes(1));
  need(mount->lookup(root_ino, "f"));
  mount.client->set_hook(before("add link", [&] {
    need(third->unlink(root_ino, "f"));
    collect(volume.cluster(), volume.clock());
  }));
  CHECK(error_of(mount->link(file.ino, root_ino, "g")) == ErrorCode::stale);
  CHECK(names_in(*mount.file_system, root_ino).empty());
  CHECK(state_of(*inode_object_of(volume.cluster(), file.ino)) == format::StateRecord::Kind::dead);
}

TEST_CASE("an open file whose last name went elsewhere has no links once a collector saw it, and gets no name back") {
  TestVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  need(other->unlink(root_ino, "f"));
  collect(volume.cluster(), volume.clock());
  volume.clock().advance(std::chrono::seconds(2));
  CHECK(links_of(fs, file.ino) == 0);
  need(write_at(fs, file.handle, 0, "bytes"));
  CHECK(links_of(fs, file.ino) == 0);
  CHECK(error_of(fs.link(file.ino, root_ino, "back")) == ErrorCode::not_found);
  CHECK(error_of(other->link(file.ino, root_ino, "back")) == ErrorCode::stale);
  CHECK(names_in(fs, root_ino).empty());
  CHECK(need(read_at(fs, file.handle, 0, 100)) == "bytes");
}

TEST_CASE("who has not open what lost its last name beside a link is told to look the path up again") {
  TestVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  const auto file = create_file(*other.file_system, "f");
  need(mount->lookup(root_ino, "f"));
  make_file(*other.file_system, root_ino, "f.new");
  need(other->rename(root_ino, "f.new", root_ino, "f", RenameMode::replace));
  REQUIRE(links_of(*other.file_system, file.ino) == 0);
  CHECK(error_of(mount->link(file.ino, root_ino, "g")) == ErrorCode::stale);
}

TEST_CASE("a directory that a failed link may lead to goes when a collector saw to that, though the client stays") {
  OneFile one;
  auto& [volume, mount, fs, f] = one;
  auto other = volume.mount();
  const auto directory = make_dir(fs, root_ino, "d");
  const bool name_is_taken = GENERATE(true, false);
  mount.client->set_hook([&](const StepInfo& info) {
    const bool is_commit = info.step == "insert entry";
    if (is_commit && name_is_taken) make_file(*other.file_system, directory, "g");
    const bool fails = info.step == "take back link" || (is_commit && !name_is_taken);
    return fails ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  CHECK(error_of(fs.link(f, directory, "g")) == (name_is_taken ? ErrorCode::exists : ErrorCode::io));
  mount.client->set_hook(nullptr);
  CHECK(links_of(fs, f) == 2);
  if (name_is_taken) need(other->unlink(directory, "g"));
  need(other->rmdir(root_ino, "d"));
  need(other->unmount());

  // What the client that stays has logged is too young for this one.
  TestCollector waits(volume.cluster(), volume.clock(), std::chrono::minutes(5));
  for (unsigned pass = 0; pass < 3; ++pass) waits.pass();
  waits.end();
  CHECK(points_back_by_key(volume, f));
  CHECK(inode_object_of(volume.cluster(), directory));
  for (unsigned pass = 0; pass < 3; ++pass) collect(volume.cluster(), volume.clock());
  CHECK_FALSE(inode_object_of(volume.cluster(), directory));
  CHECK_FALSE(points_back_by_key(volume, f));
  CHECK(links_of(fs, f) == 1);
}

TEST_CASE("a link that loses its name to another takes back what it has counted") {
  OneFile one;
  auto& [volume, mount, fs, f] = one;
  auto other = volume.mount();
  mount.client->set_hook([&](const StepInfo& info) {
    if (info.step == "insert entry" && !ino_of(*other.file_system, root_ino, "g")) {
      make_file(*other.file_system, root_ino, "g");
    }
    return Fault{};
  });
  CHECK(error_of(fs.link(f, root_ino, "g")) == ErrorCode::exists);
  CHECK(links_of(fs, f) == 1);
  CHECK_FALSE(points_back_by_key(volume, f));
}

TEST_CASE("two links of one file at once are both counted") {
  TestVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  const auto f = make_file(*mount.file_system, root_ino, "f");
  mount.client->set_hook([&](const StepInfo& info) {
    if (info.step == "add link" && !ino_of(*other.file_system, root_ino, "h")) need(other->link(f, root_ino, "h"));
    return Fault{};
  });
  CHECK(need(mount->link(f, root_ino, "g")).attributes.nlink == 3);
  CHECK(links_of(*other.file_system, f) == 3);
}

TEST_CASE("a collector that counts the names beside an unlink leaves the count to it") {
  OneFile one;
  auto& [volume, mount, fs, f] = one;
  for (const auto* name : {"g", "h"}) need(fs.link(f, root_ino, name));
  mount.client->set_hook([&](const StepInfo& info) {
    if (info.step == "change attr") collect(volume.cluster(), volume.clock());
    return Fault{};
  });
  need(fs.unlink(root_ino, "f"));
  mount.client->set_hook(nullptr);
  CHECK(links_of(fs, f) == 2);
}

TEST_CASE("a collector that an old item leads to a file beside a link of it changes nothing there") {
  OneFile one;
  auto& [volume, mount, fs, f] = one;
  need(fs.link(f, root_ino, "g"));
  mount.client->set_hook(before("insert entry", [&] { collect(volume.cluster(), volume.clock()); }));
  CHECK(need(fs.link(f, root_ino, "h")).attributes.nlink == 3);
  CHECK(links_of(fs, f) == 3);
}

TEST_CASE("a link between a collector's count and its correction is not lost") {
  OneFile one;
  auto& [volume, mount, fs, f] = one;
  need(fs.link(f, root_ino, "g"));
  set_link_count(volume, f, 5);
  TestCollector collector(volume.cluster(), volume.clock());
  bool is_linked = false;
  bool is_too_low = false;
  collector.client().set_hook([&](const StepInfo& info) {
    is_too_low = is_too_low || (is_linked && links_of(fs, f) < 3);
    if (info.step == "trim links" && !std::exchange(is_linked, true)) need(fs.link(f, root_ino, "h"));
    return Fault{};
  });
  collector.pass();
  CHECK(is_linked);
  CHECK_FALSE(is_too_low);
  collector.end();
  collect(volume.cluster(), volume.clock());
  CHECK(links_of(fs, f) == 3);
}

TEST_CASE(
    "what a file leaves that is linked and unlinked all the time does not grow from one collector's pass to the next") {
  OneFile one;
  auto& [volume, mount, fs, f] = one;
  const auto directory = make_dir(fs, root_ino, "d");
  need(fs.link(f, directory, "stays"));
  unsigned links = 0;
  const auto link_and_unlink = [&] {
    need(fs.link(f, directory, "lock"));
    need(fs.unlink(directory, "lock"));
    ++links;
  };
  TestCollector collector(volume.cluster(), volume.clock());
  bool is_nested = false;
  collector.client().set_hook([&](const StepInfo& info) {
    if (info.kind != StepKind::query || info.object != format::inode_object(f) || is_nested) return Fault{};
    is_nested = true;
    link_and_unlink();
    is_nested = false;
    return Fault{};
  });
  for (unsigned pass = 0; pass < 5; ++pass) {
    for (unsigned i = 0; i < 50; ++i) link_and_unlink();
    collector.pass();
    CHECK(keys_of(volume, format::inode_object(f), "p/") < 20);
    CHECK(keys_of(volume, format::inode_object(directory), "d/") < 20);
    CHECK(keys_of(volume, "Session.", "q/") < 20);
  }
  CHECK(links > 250);
  collector.end();
  collect(volume.cluster(), volume.clock());
  CHECK(links_of(fs, f) == 2);
  CHECK(keys_of(volume, format::inode_object(f), "p/") == 1);
  CHECK(traces_left(volume.cluster()).empty());
}

TEST_CASE("a collector drops no back-pointer for the sake of one that a link under way takes back") {
  OneFile one;
  auto& [volume, mount, fs, f] = one;
  auto other = volume.mount();
  const auto directory = make_dir(fs, root_ino, "d");
  need(other->link(f, directory, "stays"));
  need(fs.lookup(root_ino, "f"));
  mount.client->set_hook(before("insert entry", [&] {
    make_file(*other.file_system, directory, "g");
    collect(volume.cluster(), volume.clock());
  }));
  CHECK(error_of(fs.link(f, directory, "g")) == ErrorCode::exists);
  collect(volume.cluster(), volume.clock());
  CHECK(links_of(fs, f) == 2);
}
