// SPDX-License-Identifier: LGPL-2.1-or-later
// Trees that are removed as rm -r does that, by a client that does not hold them (src/fs/emptying.h).
#include <fcntl.h>

#include <algorithm>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "fs/emptying.h"
#include "support/acls.h"
#include "support/catch.h"
#include "support/fake_clock.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;
using std::chrono::seconds;

namespace {

using Trace = std::vector<std::string>;

/// As the kernel does.
Result<EntryReply> find_by_name(FileSystem& fs, Ino parent, const std::string& name) {
  const auto known = known_entry(fs, parent, name);
  return known ? *known : fs.lookup(parent, name);
}

SetAttributes mode_of(std::uint32_t mode) {
  SetAttributes change;
  change.mode = mode;
  return change;
}

/// A tree that a client has made which is gone, one that is about to remove it, and another client.
struct RemovedTree {
  static constexpr unsigned directories = 5, files = 6;

  TestVolume volume;
  Ino top = make_tree();
  Mount visitor = volume.mount(new_files_behind());
  Mount remover = volume.mount(new_files_behind());

  RemovedTree() {
    make_file(fs(), root_ino, "unrelated");  // Super is read
    need(fs().sync_directory(root_ino));
    store().reset_record();
  }
  Ino make_tree() {
    auto maker = volume.mount();
    const auto made = make_dir(*maker.file_system, root_ino, "top");
    for (unsigned d = 0; d < directories; ++d) {
      const auto directory = make_dir(*maker.file_system, made, "d" + std::to_string(d));
      for (unsigned f = 0; f < files; ++f) make_file(*maker.file_system, directory, "f" + std::to_string(f));
    }
    return made;
  }
  FileSystem& fs() { return *remover.file_system; }
  FileSystem& other() { return *visitor.file_system; }
  ScriptedClient& store() { return *remover.client; }
  Ino find(Ino parent, const std::string& name) { return need(find_by_name(fs(), parent, name)).attributes.ino; }

  /// In the order of the listing.
  std::vector<DirectoryEntry> listed(Ino directory) {
    auto all = listing(fs(), directory);
    std::erase_if(all, [](const DirectoryEntry& entry) { return entry.name == "." || entry.name == ".."; });
    return all;
  }
  void remove_file(Ino directory, const std::string& name) {
    find(directory, name);
    need(fs().unlink(directory, name));
  }
  Ino empty(const std::string& name) {
    const auto directory = find(top, name);
    for (const auto& file : listed(directory)) remove_file(directory, file.name);
    return directory;
  }
  void remove_directory(const std::string& name) {
    find(top, name);
    need(fs().rmdir(top, name));
  }
  Ino remove_directory_of_files(const std::string& name) {
    const auto directory = empty(name);
    remove_directory(name);
    return directory;
  }
  Trace steps() {
    auto all = store().trace();
    std::erase_if(all, [](const std::string& step) { return step.starts_with("query"); });
    return all;
  }
  auto how_often(const std::string& step) { return std::ranges::count(steps(), step); }
};

/// Its files in the order of the listing, of which the first is gone: the next ones are likely to go.
struct EmptiedDirectory : RemovedTree {
  Ino d = find(top, "d0");
  std::vector<DirectoryEntry> left = listed(d);

  EmptiedDirectory() {
    remove_file(d, left.front().name);
    left.erase(left.begin());
  }
};

}  // namespace

TEST_CASE("a directory of a tree that is removed costs one step before its names go, and a read for each file") {
  RemovedTree t;
  const auto all = t.listed(t.top);
  t.remove_directory_of_files(all.front().name);
  t.store().reset_record();
  const auto next = t.remove_directory_of_files(all[1].name);
  CHECK(t.steps() == Trace{step_on("take directory lease", next)});
  CHECK(t.store().counts().queries == RemovedTree::files + 2);  // itself, and its names
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("the first name that goes from a directory that was listed takes its lease, unless others want it") {
  RemovedTree t;
  const auto d = t.find(t.top, "d0");
  SECTION("a file") {
    t.listed(d);
    t.store().reset_record();
    need(t.fs().unlink(d, "f0"));
    CHECK(t.steps() == Trace{step_on("take directory lease", d)});
  }
  SECTION("one that the program has not read through: it is a step as ever") {
    t.store().reset_record();
    need(t.fs().unlink(d, "f0"));
    CHECK(t.how_often(step_on("remove entry", d)) == 1);
    CHECK(t.how_often(step_on("take directory lease", d)) == 0);
  }
  SECTION("one that was read long ago") {
    t.listed(d);
    t.volume.clock().advance(seconds(61));
    need(t.fs().unlink(d, "f0"));
    CHECK(t.how_often(step_on("take directory lease", d)) == 0);
  }
  SECTION("one that another client has asked for lately") {
    t.listed(d);
    need(t.fs().unlink(d, "f0"));
    need(t.other().unlink(d, "f1"));
    t.listed(d);
    t.store().reset_record();
    need(t.fs().unlink(d, "f2"));
    CHECK(t.how_often(step_on("take directory lease", d)) == 0);
  }
  SECTION("one that another client holds") {
    for (unsigned i = 0; i < 20; ++i) need(t.other().lookup(d, "f0"));
    t.listed(d);
    t.store().reset_record();
    need(t.fs().unlink(d, "f1"));
    CHECK(t.how_often(step_on("take directory lease", d)) == 0);
  }
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("as many subdirectories are taken when they are opened as were removed beside them") {
  RemovedTree t;
  const auto all = t.listed(t.top);
  t.remove_directory_of_files(all.front().name);
  t.store().reset_record();
  for (std::size_t i = 1; i < all.size(); ++i) t.listed(t.find(t.top, all[i].name));
  CHECK(t.steps() == Trace{step_on("take directory lease", all[1].ino)});
}

TEST_CASE("directories that are removed at about the same time go in one batch of the directory above") {
  RemovedTree t;
  const auto all = t.listed(t.top);
  t.remove_directory_of_files(all.front().name);
  need(t.fs().sync_directory(t.top));
  for (std::size_t i = 1; i < all.size(); ++i) t.empty(all[i].name);
  const auto made = need(t.fs().create({}, t.top, "made", 0600, O_WRONLY | O_CREAT | O_EXCL));
  for (std::size_t i = 1; i < all.size(); ++i) t.remove_directory(all[i].name);
  t.store().set_hook([&t](const StepInfo& step) {
    const bool is_below = step.step == "store names" && step.object != format::inode_object(t.top);
    return is_below ? Fault{Fault::Kind::hold} : Fault{};
  });
  t.store().reset_record();
  SECTION("once those below are stored") {
    t.fs().tick();
    CHECK(t.how_often(step_on("store names", t.top)) == 0);
    t.store().release_all();
    CHECK(t.how_often(step_on("store names", t.top)) == 1);
  }
  SECTION("one that does not answer keeps the others back for a tick") {
    t.fs().tick();
    t.store().release(0);
    CHECK(t.how_often(step_on("store names", t.top)) == 0);
    t.fs().tick();
    CHECK(t.how_often(step_on("store names", t.top)) == 1);
    t.store().release_all();
  }
  SECTION("nor does it keep back what somebody waits for") {
    t.fs().tick();
    need(t.fs().fsync(made.open.handle, false));
    CHECK(t.how_often(step_on("store names", t.top)) == 1);
    t.store().release_all();
  }
  t.store().set_hook(nullptr);
  need(t.fs().sync_directory(t.top));
  CHECK(names_in(t.other(), t.top) == std::vector<std::string>{"made"});
  t.fs().release(made.open.handle);
  CHECK(problems(t.volume.cluster()).empty());
}

TEST_CASE("the next file to go is found without a read, with attributes that the kernel asks for if it needs them") {
  EmptiedDirectory t;
  t.remove_file(t.d, t.left[0].name);  // from here on they are read ahead
  t.remove_file(t.d, t.left[1].name);
  const auto& next = t.left[2];
  need(t.other().set_attributes({}, next.ino, mode_of(0600)));
  t.store().reset_record();
  const auto found = need(find_by_name(t.fs(), t.d, next.name));
  CHECK(t.store().counts().queries == 0);
  CHECK(found.attributes.ino == next.ino);
  CHECK(found.attributes_ttl == seconds(0));
  CHECK((need(t.fs().get_attributes(next.ino)).attributes.mode & 0777) == 0600);
}

TEST_CASE("an unmount does not wait for a file that was read ahead") {
  EmptiedDirectory t;
  t.remove_file(t.d, t.left[0].name);
  t.store().set_hook([object = format::inode_object(t.left[2].ino)](const StepInfo& info) {
    const bool is_read = info.kind == StepKind::query && info.object == object;
    return is_read ? Fault{Fault::Kind::hold} : Fault{};
  });
  t.remove_file(t.d, t.left[1].name);
  REQUIRE(t.store().wait_for_held(1));
  auto unmounted = std::async(std::launch::async, [&] { return t.fs().unmount(); });
  CHECK(unmounted.wait_for(seconds(60)) == std::future_status::ready);
  t.store().set_hook(nullptr);
  t.store().release_all();
  need(unmounted.get());
}

TEST_CASE("what the kernel was told of a file that was likely to go is not relied on") {
  EmptiedDirectory t;
  t.remove_file(t.d, t.left[0].name);
  t.remove_file(t.d, t.left[1].name);
  const auto& file = t.left[2];
  const auto change = GENERATE(0, 1, 2);
  if (change == 0) {
    SetAttributes owner;
    owner.uid = 7;
    need(t.other().set_attributes({}, file.ino, owner));
  }
  if (change == 1)
    need(t.other().set_xattr(file.ino, "system.posix_acl_access", encode(acl_of("u::rw-,u:7:r--,g::r--,m::rw-,o::---")),
                             XattrMode::create_or_replace, SetgidBit::stays));
  t.find(t.d, file.name);
  const auto is_told_anew = change == 2 ? std::optional<ErrorCode>() : std::optional(ErrorCode::stale);
  SECTION("its mode is changed, once the name was looked up anew") {
    for (unsigned i = 0; i < 2; ++i) {
      CHECK(error_of(t.fs().set_attributes({}, file.ino, mode_of(0777))) == is_told_anew);
    }
    t.find(t.d, file.name);
    need(t.fs().set_attributes({}, file.ino, mode_of(0777)));
  }
  SECTION("or by a descriptor, once its attributes were asked for") {
    need(t.fs().get_attributes(file.ino));
    need(t.fs().set_attributes({}, file.ino, mode_of(0777)));
  }
  SECTION("it is given another name") { CHECK(error_of(t.fs().link(file.ino, t.top, "link")) == is_told_anew); }
  SECTION("an attribute is set") {
    CHECK(error_of(t.fs().set_xattr(file.ino, "user.a", {}, XattrMode::create_or_replace, SetgidBit::stays)) ==
          is_told_anew);
  }
  SECTION("an attribute is removed") {
    const auto removed = error_of(t.fs().remove_xattr(file.ino, "user.a"));
    CHECK(removed == (is_told_anew ? is_told_anew : std::optional(ErrorCode::no_attribute)));
  }
  SECTION("its ACL is read") {
    CHECK_FALSE(t.fs().knows_no_xattr(file.ino, "system.posix_acl_access"));
    CHECK(t.fs().get_xattr(file.ino, "system.posix_acl_access").has_value() == (change == 1));
  }
}

TEST_CASE("once a file was used that was likely to go, those after it are read as ever") {
  EmptiedDirectory t;
  t.remove_file(t.d, t.left[0].name);
  t.remove_file(t.d, t.left[1].name);
  CHECK(need(find_by_name(t.fs(), t.d, t.left[2].name)).attributes_ttl == seconds(0));
  need(t.fs().get_attributes(t.left[2].ino));
  need(t.fs().unlink(t.d, t.left[2].name));
  CHECK(need(find_by_name(t.fs(), t.d, t.left[3].name)).attributes_ttl > seconds(0));
}

TEST_CASE("what is not likely to go is read as ever") {
  EmptiedDirectory t;
  const auto costs_reads = [&t](const DirectoryEntry& file) {
    t.store().reset_record();
    const auto found = need(find_by_name(t.fs(), t.d, file.name));
    CHECK(found.attributes_ttl > seconds(0));
    return t.store().counts().queries;
  };
  t.remove_file(t.d, t.left[0].name);
  t.remove_file(t.d, t.left[1].name);
  SECTION("the second one after a removal") {
    t.find(t.d, t.left[2].name);
    CHECK(costs_reads(t.left[3]) == 1);
  }
  SECTION("in a sticky directory, from which the kernel lets only an owner remove a file") {
    need(t.fs().set_attributes({}, t.d, mode_of(01777)));
    need(t.fs().lookup(t.d, t.left[4].name));
    CHECK(costs_reads(t.left[2]) >= 1);
  }
  SECTION("a file that is open here") {
    const auto open = need(t.fs().open({}, t.left[2].ino, O_RDONLY));
    CHECK(costs_reads(t.left[2]) >= 1);
    t.fs().release(open.handle);
  }
}

TEST_CASE("of a file that another client writes the size is asked for, though it is likely to go") {
  EmptiedDirectory t;
  const auto open = need(t.other().open({}, t.left[2].ino, O_RDWR));
  need(write_at(t.other(), open.handle, 0, "bytes"));
  t.remove_file(t.d, t.left[0].name);
  t.remove_file(t.d, t.left[1].name);
  CHECK(need(find_by_name(t.fs(), t.d, t.left[2].name)).attributes.size_bytes == 5);
  t.other().release(open.handle);
}

TEST_CASE("new files that the store does not have are not read ahead") {
  RemovedTree t;
  const auto directories = t.listed(t.top);
  t.remove_directory_of_files(directories.front().name);
  const auto d = t.find(t.top, directories[1].name);
  const auto left = t.listed(d);  // so many names are read ahead at once that a new one is among them
  std::vector<Ino> made;
  for (unsigned i = 0; i < 30; ++i) made.push_back(make_file(t.fs(), d, "new" + std::to_string(i)));
  t.store().reset_record();
  for (const auto& file : left) t.remove_file(d, file.name);
  CHECK(std::ranges::all_of(made, [&t](Ino ino) { return t.how_often(step_on("create inode", ino)) == 0; }));
}

TEST_CASE("more and more names are read ahead as long as each that is read so comes next") {
  FakeClock clock;
  Emptying emptying(clock);
  const Ino d{7};
  const auto read = [&](const char* key, const char* next) {
    const auto many = emptying.worth_reading_after(d, key);
    if (many) emptying.is_read_up_to(d, next);
    return many;
  };
  CHECK(read("a", "b") == 0);
  CHECK(read("b", "e") == 2);
  CHECK_FALSE(read("c", "d"));  // on its way
  CHECK_FALSE(read("d", "e"));
  CHECK(read("e", "j") == 4);
  CHECK(read("x", "y") == 0);
  CHECK(read("a", "b") == 0);
  CHECK(read("b", "end") == 2);
  CHECK_FALSE(read("c", "d"));
}

TEST_CASE("a client that stands still for minutes while it learns of a directory continues") {
  struct StandingClock : FakeClock {
    std::chrono::nanoseconds elapsed() const override { return std::chrono::minutes(2) * ++reads; }
    mutable int reads = 0;
  };
  StandingClock clock;
  Emptying emptying(clock);
  emptying.lost_directory(Ino{6});
  CHECK_FALSE(emptying.takes_next_directory(Ino{6}, Ino{7}));
}

TEST_CASE("of a directory that goes whole the first names are read ahead at once") {
  FakeClock clock;
  Emptying emptying(clock);
  CHECK_FALSE(emptying.takes_next_directory(Ino{6}, Ino{7}));
  emptying.lost_directory(Ino{6});
  CHECK(emptying.takes_next_directory(Ino{6}, Ino{7}));
  CHECK(emptying.takes_next_file(Ino{7}));
  CHECK_FALSE(emptying.takes_next_file(Ino{7}));
  CHECK(emptying.worth_reading_after(Ino{7}, "a") == 32);
}
