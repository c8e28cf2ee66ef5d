// SPDX-License-Identifier: LGPL-2.1-or-later
// Making, finding and removing names, by one client.
#include <fcntl.h>

#include "support/catch.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

const std::string long_name(256, 'n');
const std::string longest_name(255, 'n');

Ino ino_at(const Result<EntryReply>& found) { return need(found).attributes.ino; }

NewNode node_of(FileType type, std::uint32_t mode = 0644) { return {type, mode, 0, {}}; }

}  // namespace

TEST_CASE("a new file is found under its name, with its owner and mode") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto made = need(fs->make_node({7, 8}, root_ino, "f", node_of(FileType::regular, 0640)));
  CHECK(made.entry_ttl == std::chrono::seconds(0));
  CHECK(need(fs->lookup(root_ino, "f")).entry_ttl == std::chrono::seconds(0));
  const auto found = need(fs->lookup(root_ino, "f")).attributes;
  CHECK(found.ino == made.attributes.ino);
  CHECK(found.type == FileType::regular);
  CHECK(found.mode == 0640);
  CHECK(found.uid == 7);
  CHECK(found.gid == 8);
  CHECK(found.nlink == 1);
  CHECK(found.size_bytes == 0);
  CHECK(found.mtime == volume.clock().wall_time());
  CHECK(problems(volume.cluster()).empty());
}

TEST_CASE("a missing name is not found, and a name of 255 bytes is the longest") {
  TestVolume volume;
  auto fs = volume.mount();
  CHECK(error_of(fs->lookup(root_ino, "none")) == ErrorCode::not_found);
  CHECK(error_of(fs->lookup(root_ino, long_name)) == ErrorCode::name_too_long);
  CHECK(error_of(fs->make_node({}, root_ino, long_name, node_of(FileType::regular))) == ErrorCode::name_too_long);
  const auto ino = make_file(*fs.file_system, root_ino, longest_name);
  CHECK(ino_of(*fs.file_system, root_ino, longest_name) == ino);
}

TEST_CASE("every type of inode can be made, and tells its type and device") {
  TestVolume volume;
  auto fs = volume.mount();
  for (const auto type : {FileType::regular, FileType::fifo, FileType::socket, FileType::character_device,
                          FileType::block_device, FileType::directory}) {
    const auto name = "n" + std::to_string(static_cast<int>(type));
    need(fs->make_node({}, root_ino, name, {type, 0600, 0x0501, {}}));
    const auto found = need(fs->lookup(root_ino, name)).attributes;
    const bool device = type == FileType::character_device || type == FileType::block_device;
    CHECK(found.type == type);
    CHECK(found.rdev == (device ? 0x0501 : 0));
  }
  CHECK(problems(volume.cluster()).empty());
}

TEST_CASE("a symlink keeps its target, up to 4095 bytes") {
  TestVolume volume;
  auto fs = volume.mount();
  const std::string target(4095, 't');
  const auto made = need(fs->make_node({}, root_ino, "l", {FileType::symlink, 0, 0, target}));
  CHECK(made.attributes.size_bytes == 4095);
  CHECK(made.attributes.mode == 0777);
  CHECK(need(fs->read_link(made.attributes.ino)) == target);
  CHECK(need(fs->lookup(root_ino, "l")).attributes.size_bytes == 4095);
  CHECK(error_of(fs->make_node({}, root_ino, "m", {FileType::symlink, 0, 0, target + "t"})) ==
        ErrorCode::name_too_long);
  CHECK(error_of(fs->read_link(make_file(*fs.file_system, root_ino, "f"))) == ErrorCode::invalid);
  CHECK(error_of(fs->read_link(Ino{999'999})) == ErrorCode::stale);
}

TEST_CASE("a name that is taken is refused, whatever has it, and nothing is left of the attempt") {
  TestVolume volume;
  auto fs = volume.mount();
  make_file(*fs.file_system, root_ino, "f");
  make_dir(*fs.file_system, root_ino, "d");
  fs.client->reset_record();
  for (const std::string name : {"f", "d"}) {
    CHECK(error_of(fs->make_node({}, root_ino, name, node_of(FileType::regular))) == ErrorCode::exists);
    CHECK(error_of(fs->make_node({}, root_ino, name, node_of(FileType::directory))) == ErrorCode::exists);
    CHECK(error_of(fs->create({}, root_ino, name, 0644, O_RDWR | O_EXCL)) == ErrorCode::exists);
  }
  CHECK(fs.client->counts().applies == 0);
}

TEST_CASE("create without O_EXCL opens the file that is there") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto first = create_file(*fs.file_system, "f");
  need(write_at(*fs.file_system, first.handle, 0, "text"));
  close_file(*fs.file_system, first.handle);
  const auto again = need(fs->create({}, root_ino, "f", 0644, O_RDWR | O_CREAT));
  CHECK(again.entry.attributes.ino == first.ino);
  CHECK(again.entry.attributes.size_bytes == 4);
  CHECK(need(read_at(*fs.file_system, again.open.handle, 0, 10)) == "text");
  close_file(*fs.file_system, again.open.handle);
  const auto cut = need(fs->create({}, root_ino, "f", 0644, O_RDWR | O_CREAT | O_TRUNC));
  CHECK(cut.entry.attributes.size_bytes == 0);
  make_dir(*fs.file_system, root_ino, "d");
  CHECK(error_of(fs->create({}, root_ino, "d", 0644, O_RDWR | O_CREAT)) == ErrorCode::is_directory);
}

TEST_CASE("a setgid directory hands down its group, and the bit to subdirectories alone") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto shared = need(fs->make_node({1, 50}, root_ino, "shared", {FileType::directory, 02775, 0, {}}));
  const Ino parent = shared.attributes.ino;
  CHECK(shared.attributes.mode == 02775);
  const auto file = need(fs->make_node({2, 60}, parent, "f", node_of(FileType::regular))).attributes;
  CHECK(file.gid == 50);
  CHECK(file.mode == 0644);
  const auto created = need(fs->create({2, 60}, parent, "c", 0600, O_RDWR)).entry.attributes;
  CHECK(created.gid == 50);
  const auto below = need(fs->make_node({2, 60}, parent, "d", {FileType::directory, 0755, 0, {}})).attributes;
  CHECK(below.gid == 50);
  CHECK(below.mode == 02755);
  const auto plain = need(fs->make_node({2, 60}, root_ino, "p", {FileType::directory, 0755, 0, {}})).attributes;
  CHECK(plain.gid == 60);
  CHECK(plain.mode == 0755);
}

TEST_CASE("names change the times of their directory, and subdirectories its link count") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto root = [&] { return need(fs->get_attributes(root_ino)).attributes; };
  CHECK(root().nlink == 2);
  const auto changes_root = [&](const std::function<void()>& act, std::uint32_t nlink) {
    volume.clock().advance(std::chrono::milliseconds(10));
    act();
    CHECK(root().mtime == volume.clock().wall_time());
    CHECK(root().ctime == volume.clock().wall_time());
    CHECK(root().nlink == nlink);
  };
  changes_root([&] { make_file(*fs.file_system, root_ino, "f"); }, 2);
  changes_root([&] { make_dir(*fs.file_system, root_ino, "d"); }, 3);
  changes_root([&] { need(fs->rename(root_ino, "f", root_ino, "g", RenameMode::replace)); }, 3);
  changes_root([&] { need(fs->unlink(root_ino, "g")); }, 3);
  changes_root([&] { need(fs->rmdir(root_ino, "d")); }, 2);
  CHECK(need(volume.mount()->get_attributes(root_ino)).attributes.nlink == 2);
}

TEST_CASE("a create whose last step may have been applied leaves its inode to the collector") {
  TestVolume volume;
  auto mount = volume.mount();
  mount.client->set_hook(once_on("insert entry", {Fault::Kind::fail, ErrorCode::io}));
  CHECK(error_of(mount->make_node({}, root_ino, "a", {FileType::regular, 0644, 0, {}})) == ErrorCode::io);
  const auto trace = mount.client->trace();
  CHECK(std::ranges::any_of(trace, [](const auto& step) { return step.starts_with("log queue items"); }));
}

TEST_CASE("unlink takes the name and leaves the inode to the collector, detached") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto ino = make_file(*fs.file_system, root_ino, "f");
  need(fs->unlink(root_ino, "f"));
  CHECK(error_of(fs->lookup(root_ino, "f")) == ErrorCode::not_found);
  CHECK(error_of(fs->unlink(root_ino, "f")) == ErrorCode::not_found);
  CHECK(has_keys(*inode_object_of(volume.cluster(), root_ino), "d/" + std::to_string(ino.value) + "/"));
  CHECK(problems(volume.cluster()).empty());
}

TEST_CASE("unlink refuses directories, rmdir everything else") {
  TestVolume volume;
  auto fs = volume.mount();
  make_file(*fs.file_system, root_ino, "f");
  make_dir(*fs.file_system, root_ino, "d");
  CHECK(error_of(fs->unlink(root_ino, "d")) == ErrorCode::is_directory);
  CHECK(error_of(fs->rmdir(root_ino, "f")) == ErrorCode::not_directory);
  CHECK(error_of(fs->rmdir(root_ino, "none")) == ErrorCode::not_found);
  CHECK(names_in(*fs.file_system, root_ino) == std::vector<std::string>{"d", "f"});
}

TEST_CASE("an open file that loses its last name shows no links, and is still readable") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto file = create_file(*fs.file_system, "f");
  need(write_at(*fs.file_system, file.handle, 0, "kept"));
  need(fs->unlink(root_ino, "f"));
  CHECK(need(fs->get_attributes(file.ino)).attributes.nlink == 0);
  CHECK(need(read_at(*fs.file_system, file.handle, 0, 10)) == "kept");
}

TEST_CASE("rmdir removes an empty directory only, and what is in it stays") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto d = make_dir(*fs.file_system, root_ino, "d");
  const auto f = make_file(*fs.file_system, d, "f");
  CHECK(error_of(fs->rmdir(root_ino, "d")) == ErrorCode::not_empty);
  CHECK(ino_of(*fs.file_system, d, "f") == f);
  need(fs->unlink(d, "f"));
  need(fs->rmdir(root_ino, "d"));
  CHECK(error_of(fs->lookup(root_ino, "d")) == ErrorCode::not_found);
  CHECK(problems(volume.cluster()).empty());
}

TEST_CASE("whatever would be done in a removed directory, the kernel is told to look its path up anew") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto d = make_dir(*fs.file_system, root_ino, "d");
  need(fs->rmdir(root_ino, "d"));
  const auto set_state = [&](format::StateRecord::Kind kind) {
    volume.cluster().with_objects([&](scripted::Objects& objects) {
      auto& directory = objects.metadata().at(format::inode_object(d));
      directory.xattrs[format::xattr::state] = encode(format::StateRecord{kind, {}, {}, {}});
    });
  };
  SECTION("its name is gone") {}
  SECTION("marked dead") { set_state(format::StateRecord::Kind::dead); }
  SECTION("gone") {
    volume.cluster().with_objects(
        [&](scripted::Objects& objects) { objects.metadata().erase(format::inode_object(d)); });
  }
  CHECK(error_of(fs->make_node({}, d, "f", node_of(FileType::regular))) == ErrorCode::stale);
  CHECK(error_of(fs->make_node({}, d, "s", node_of(FileType::directory))) == ErrorCode::stale);
  CHECK(error_of(fs->create({}, d, "f", 0644, O_RDWR)) == ErrorCode::stale);
  CHECK(error_of(fs->lookup(d, "f")) == ErrorCode::not_found);
  CHECK(error_of(fs->unlink(d, "f")) == ErrorCode::stale);
  CHECK(error_of(fs->rmdir(d, "f")) == ErrorCode::stale);
  CHECK(error_of(fs->rename(d, "f", d, "g", RenameMode::replace)) == ErrorCode::stale);
  CHECK(error_of(fs->open_directory(d)) == ErrorCode::stale);
}

TEST_CASE("an inode is found by its number as long as a name leads to it, or it is open") {
  TestVolume volume;
  auto fs = volume.mount();
  auto other = volume.mount();
  const auto d = make_dir(*fs.file_system, root_ino, "d");
  const auto f = make_file(*fs.file_system, d, "f");
  const auto by_number = [&](Ino ino, const char* how) { return ino_at(other->lookup(ino, how)); };
  CHECK(by_number(f, ".") == f);
  CHECK(by_number(d, ".") == d);
  CHECK(by_number(d, "..") == root_ino);
  CHECK(by_number(root_ino, ".") == root_ino);
  CHECK(by_number(root_ino, "..") == root_ino);
  need(fs->rename(d, "f", d, "g", RenameMode::replace));
  CHECK(by_number(f, ".") == f);
  const auto handle = need(other->open({}, f, O_RDONLY)).handle;
  need(fs->unlink(d, "g"));
  CHECK(by_number(f, ".") == f);
  other->release(handle);
  need(fs->rmdir(root_ino, "d"));
  for (const auto ino : {f, d, Ino{999'999}}) CHECK(error_of(other->lookup(ino, ".")) == ErrorCode::stale);
  CHECK(error_of(other->lookup(Ino{999'999}, "..")) == ErrorCode::stale);
}

TEST_CASE("what memory holds of a directory that another client removed does not hide that it is gone") {
  TestVolume volume;
  auto a = volume.mount();
  auto b = volume.mount();
  const auto d = make_dir(*a.file_system, root_ino, "d");
  for (const auto* name : {"f", "g"}) make_file(*b.file_system, d, name);
  for (const auto* name : {"f", "g"}) need(a->unlink(d, name));
  need(a->rmdir(root_ino, "d"));
  CHECK(error_of(b->unlink(d, "f")) == ErrorCode::stale);
  CHECK(error_of(b->rename(d, "f", d, "g", RenameMode::replace)) == ErrorCode::stale);
  CHECK(error_of(b->make_node({}, d, "h", node_of(FileType::regular))) == ErrorCode::stale);
}

TEST_CASE("an open directory that was removed has no links, and one that was not removed after all has them") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto d = make_dir(*fs.file_system, root_ino, "d");
  const auto handle = need(fs->open_directory(d));
  SECTION("removed") {
    need(fs->rmdir(root_ino, "d"));
    fs.client->reset_record();
    CHECK(need(fs->get_attributes(d)).attributes.nlink == 0);
    CHECK(fs.client->counts() == StepCounts{.queries = 2});
    CHECK(need(fs->read_directory(handle, 0, 10)).size() == 2);
  }
  SECTION("its remover died before it was") {
    auto other = volume.mount();
    other.client->set_hook(once_on("remove entry", {Fault::Kind::not_applied_and_crash, ErrorCode::io}));
    CHECK_FALSE(other->rmdir(root_ino, "d"));
    CHECK(need(fs->get_attributes(d)).attributes.nlink == 2);
  }
  fs->release_directory(handle);
}

TEST_CASE("names in what is no directory, or in nothing, are refused") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto f = make_file(*fs.file_system, root_ino, "f");
  CHECK(error_of(fs->lookup(f, "x")) == ErrorCode::not_directory);
  CHECK(error_of(fs->make_node({}, f, "x", node_of(FileType::regular))) == ErrorCode::not_directory);
  CHECK(error_of(fs->make_node({}, Ino{999'999}, "x", node_of(FileType::regular))) == ErrorCode::stale);
}

TEST_CASE("a name whose inode is gone does not exist, and gives way to whoever needs it") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto lose = [&](const std::string& name, bool directory) {
    const auto ino = directory ? make_dir(*fs.file_system, root_ino, name) : make_file(*fs.file_system, root_ino, name);
    volume.cluster().with_objects(
        [&](scripted::Objects& objects) { objects.metadata().erase(format::inode_object(ino)); });
    fs->forget(ino);
    CHECK(error_of(fs->lookup(root_ino, name)) == ErrorCode::not_found);
  };
  SECTION("unlink") {
    lose("x", false);
    CHECK(error_of(fs->unlink(root_ino, "x")) == ErrorCode::not_found);
  }
  SECTION("rmdir") {
    lose("x", true);
    CHECK(error_of(fs->rmdir(root_ino, "x")) == ErrorCode::not_found);
  }
  SECTION("create") {
    lose("x", false);
    make_file(*fs.file_system, root_ino, "x");
  }
  SECTION("mkdir") {
    lose("x", true);
    make_dir(*fs.file_system, root_ino, "x");
  }
  SECTION("rename away") {
    lose("x", false);
    CHECK(error_of(fs->rename(root_ino, "x", root_ino, "y", RenameMode::replace)) == ErrorCode::not_found);
  }
  SECTION("rename over it") {
    lose("x", true);
    make_file(*fs.file_system, root_ino, "y");
    need(fs->rename(root_ino, "y", root_ino, "x", RenameMode::no_replace));
  }
  SECTION("rmdir of its directory") {
    const auto d = make_dir(*fs.file_system, root_ino, "d");
    const auto f = make_file(*fs.file_system, d, "f");
    volume.cluster().with_objects(
        [&](scripted::Objects& objects) { objects.metadata().erase(format::inode_object(f)); });
    fs->forget(f);
    need(fs->rmdir(root_ino, "d"));
  }
  CHECK(problems(volume.cluster()).empty());
}

TEST_CASE("a read-only mount looks and changes nothing") {
  TestVolume volume;
  auto writer = volume.mount();
  const auto ino = make_file(*writer.file_system, root_ino, "f");
  FileSystemOptions options;
  options.read_only = true;
  auto fs = volume.mount(options);
  CHECK(ino_of(*fs.file_system, root_ino, "f") == ino);
  CHECK(error_of(fs->make_node({}, root_ino, "g", node_of(FileType::regular))) == ErrorCode::read_only);
  CHECK(error_of(fs->create({}, root_ino, "g", 0644, O_RDWR)) == ErrorCode::read_only);
  CHECK(error_of(fs->unlink(root_ino, "f")) == ErrorCode::read_only);
  CHECK(error_of(fs->rmdir(root_ino, "f")) == ErrorCode::read_only);
  CHECK(error_of(fs->rename(root_ino, "f", root_ino, "g", RenameMode::replace)) == ErrorCode::read_only);
  CHECK(error_of(fs->set_xattr(ino, "user.a", "1", XattrMode::create)) == ErrorCode::read_only);
  SetAttributes mode;
  mode.mode = 0600;
  CHECK(error_of(fs->set_attributes({}, ino, mode)) == ErrorCode::read_only);
  CHECK(fs.client->counts().applies == 0);
}
