// SPDX-License-Identifier: LGPL-2.1-or-later
// rename inside one directory: what it answers for every pair of things, in every mode.
#include <fcntl.h>

#include <algorithm>
#include <thread>

#include "support/catch.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"
#include "txn/attribute_txn.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

enum class Thing { nothing, file, symlink, empty_directory, full_directory };
constexpr Thing things[] = {Thing::nothing, Thing::file, Thing::symlink, Thing::empty_directory, Thing::full_directory};

bool is_directory(Thing thing) { return thing == Thing::empty_directory || thing == Thing::full_directory; }

std::optional<Ino> make(FileSystem& fs, const std::string& name, Thing thing) {
  if (thing == Thing::nothing) return std::nullopt;
  if (thing == Thing::file) return make_file(fs, root_ino, name);
  if (thing == Thing::symlink) {
    return need(fs.make_node({}, root_ino, name, {FileType::symlink, 0, 0, "to"})).attributes.ino;
  }
  const auto directory = make_dir(fs, root_ino, name);
  if (thing == Thing::full_directory) make_file(fs, directory, "inside");
  return directory;
}

/// As Linux answers.
std::optional<ErrorCode> expected(Thing from, Thing to, RenameMode mode) {
  if (from == Thing::nothing) return ErrorCode::not_found;
  if (mode == RenameMode::exchange) return to == Thing::nothing ? std::optional(ErrorCode::not_found) : std::nullopt;
  if (to == Thing::nothing) return std::nullopt;
  if (mode == RenameMode::no_replace) return ErrorCode::exists;
  if (is_directory(from) != is_directory(to)) {
    return is_directory(from) ? ErrorCode::not_directory : ErrorCode::is_directory;
  }
  return to == Thing::full_directory ? std::optional(ErrorCode::not_empty) : std::nullopt;
}

const char* name_of(RenameMode mode) {
  return mode == RenameMode::replace ? "replace" : mode == RenameMode::exchange ? "exchange" : "no_replace";
}

}  // namespace

TEST_CASE("rename does what Linux does for every pair of things in every mode") {
  for (const auto mode : {RenameMode::replace, RenameMode::no_replace, RenameMode::exchange}) {
    for (const Thing from : things) {
      for (const Thing to : things) {
        for (const bool looked_up : {true, false}) {
          TestVolume volume;
          auto mount = volume.mount();
          auto& fs = *mount.file_system;
          INFO(name_of(mode) << ": " << static_cast<int>(from) << " to " << static_cast<int>(to));
          const auto a = make(fs, "a", from);
          const auto b = make(fs, "b", to);
          if (!looked_up) volume.clock().advance(std::chrono::seconds(2));
          const auto wanted = expected(from, to, mode);
          CHECK(error_of(fs.rename(root_ino, "a", root_ino, "b", mode)) == wanted);
          const bool done = !wanted;
          CHECK(ino_of(fs, root_ino, "b") == (done ? a : b));
          CHECK(ino_of(fs, root_ino, "a") == (!done ? a : mode == RenameMode::exchange ? b : std::nullopt));
          CHECK(problems(volume.cluster()).empty());
          const auto directories = (is_directory(from) ? 2 : 0) + (is_directory(to) ? 1 : 0);
          const bool one_less = done && mode == RenameMode::replace && is_directory(to);
          const auto left = directories == 3 ? (one_less ? 1U : 2U) : directories == 0 ? 0U : 1U;
          CHECK(need(fs.get_attributes(root_ino)).attributes.nlink == 2 + left);
        }
      }
    }
  }
}

TEST_CASE("a name renamed to itself stays, unless it must not exist") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto ino = make_file(*fs.file_system, root_ino, "f");
  fs.client->reset_record();
  need(fs->rename(root_ino, "f", root_ino, "f", RenameMode::replace));
  need(fs->rename(root_ino, "f", root_ino, "f", RenameMode::exchange));
  CHECK(error_of(fs->rename(root_ino, "f", root_ino, "f", RenameMode::no_replace)) == ErrorCode::exists);
  CHECK(error_of(fs->rename(root_ino, "g", root_ino, "g", RenameMode::replace)) == ErrorCode::not_found);
  CHECK(fs.client->counts().applies == 0);
  CHECK(ino_of(*fs.file_system, root_ino, "f") == ino);
}

TEST_CASE("a name that is too long is no new name") {
  TestVolume volume;
  auto fs = volume.mount();
  make_file(*fs.file_system, root_ino, "f");
  CHECK(error_of(fs->rename(root_ino, "f", root_ino, std::string(256, 'n'), RenameMode::replace)) ==
        ErrorCode::name_too_long);
}

TEST_CASE("what is moved gets a new ctime, and keeps everything else") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto f = make_file(*fs.file_system, root_ino, "f");
  const auto d = make_dir(*fs.file_system, root_ino, "d");
  const auto born = volume.clock().wall_time();
  volume.clock().advance(std::chrono::milliseconds(100));
  need(fs->rename(root_ino, "f", root_ino, "g", RenameMode::replace));
  need(fs->rename(root_ino, "d", root_ino, "e", RenameMode::replace));
  for (const auto ino : {f, d}) {
    const auto attributes = need(fs->get_attributes(ino)).attributes;
    CHECK(attributes.ctime == volume.clock().wall_time());
    CHECK(attributes.mtime == born);
  }
  volume.clock().advance(std::chrono::milliseconds(100));
  need(fs->rename(root_ino, "g", root_ino, "e", RenameMode::exchange));
  for (const auto ino : {f, d}) CHECK(need(fs->get_attributes(ino)).attributes.ctime == volume.clock().wall_time());
}

TEST_CASE("a file that is replaced while open stays readable and shows no links") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto old = create_file(*fs.file_system, "x");
  need(write_at(*fs.file_system, old.handle, 0, "old"));
  make_file(*fs.file_system, root_ino, "x.tmp");
  need(fs->rename(root_ino, "x.tmp", root_ino, "x", RenameMode::replace));
  CHECK(need(fs->get_attributes(old.ino)).attributes.nlink == 0);
  CHECK(need(read_at(*fs.file_system, old.handle, 0, 10)) == "old");
}

TEST_CASE("every entry that a rename writes carries a token of its own") {
  TestVolume volume;
  auto fs = volume.mount();
  make_file(*fs.file_system, root_ino, "a");
  make_file(*fs.file_system, root_ino, "b");
  const auto tokens = [&] {
    std::vector<Token> found;
    const auto root = *inode_object_of(volume.cluster(), root_ino);
    for (const auto& [key, value] : root.keys) {
      if (format::parse_entry_key(key)) found.push_back(need(format::decode<format::EntryRecord>(value)).token);
    }
    return found;
  };
  const auto before = tokens();
  need(fs->rename(root_ino, "a", root_ino, "b", RenameMode::exchange));
  const auto after = tokens();
  CHECK(after[0] == after[1]);
  CHECK(std::ranges::find(before, after[0]) == before.end());
}

TEST_CASE("while the ctime of a renamed file is on its way, the newest waits behind it, and no rename does") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto f = make_file(*fs.file_system, root_ino, "f");
  fs.client->set_hook(once_on("set ctime", {Fault::Kind::hold, ErrorCode::io}));
  for (int i = 0; i < 300; ++i) {
    volume.clock().advance(std::chrono::milliseconds(1));
    need(fs->rename(root_ino, "f", root_ino, "g", RenameMode::replace));
    need(fs->rename(root_ino, "g", root_ino, "f", RenameMode::replace));
  }
  REQUIRE(fs.client->wait_for_held(1));
  const auto last = volume.clock().wall_time();
  volume.clock().advance(std::chrono::milliseconds(1));
  SECTION("it is stored next") {
    fs.client->release();
    need(fs->unmount());
    CHECK(need(volume.mount()->get_attributes(f)).attributes.ctime == last);
    const auto steps = [trace = fs.client->trace()](std::string_view name) {
      return std::ranges::count_if(trace, [name](const auto& step) { return step.starts_with(name); });
    };
    CHECK(steps("set ctime ") == 1);
    CHECK(steps("set next ctime ") == 1);
  }
  SECTION("unless another change has set a later one") {
    fs.client->set_hook(once_on("set next ctime", {Fault::Kind::hold, ErrorCode::io}));
    fs.client->release();
    REQUIRE(fs.client->wait_for_held(1));
    need(volume.new_client()->apply(txn::set_ctime(f, volume.clock().wall_time())));
    fs.client->release();
    need(fs->unmount());
    CHECK(need(volume.mount()->get_attributes(f)).attributes.ctime == volume.clock().wall_time());
  }
}

TEST_CASE("unmount waits for the ctime after a rename") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto f = make_file(*fs.file_system, root_ino, "f");
  volume.clock().advance(std::chrono::milliseconds(100));
  fs.client->set_hook(once_on("set ctime", {Fault::Kind::hold, ErrorCode::io}));
  need(fs->rename(root_ino, "f", root_ino, "g", RenameMode::replace));
  REQUIRE(fs.client->wait_for_held(1));
  std::thread unmounting([&] { need(fs->unmount()); });
  fs.client->release();
  unmounting.join();
  CHECK(need(volume.mount()->get_attributes(f)).attributes.ctime == volume.clock().wall_time());
}
