// SPDX-License-Identifier: LGPL-2.1-or-later
// What names cost in store operations, after a lookup of the same names whose answer this client still holds.
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <future>

#include "support/catch.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

using Trace = std::vector<std::string>;

/// A client that has used the root before, and looks the names up anew.
struct Prepared {
  TestVolume volume;
  Mount fs = volume.mount();

  Prepared() {
    make_file(*fs.file_system, root_ino, "warm");
    need(fs->unlink(root_ino, "warm"));
  }
  void look_up(const std::vector<std::string>& names) {
    volume.clock().advance(std::chrono::seconds(2));
    for (const auto& name : names) std::ignore = fs->lookup(root_ino, name);
    fs.client->reset_record();
  }
};

}  // namespace

TEST_CASE("lookup of an existing name is 2 reads, of a missing one 1") {
  Prepared p;
  make_file(*p.fs.file_system, root_ino, "f");
  p.look_up({});
  need(p.fs->lookup(root_ino, "f"));
  CHECK(p.fs.client->counts() == StepCounts{.queries = 2});
  p.look_up({});
  CHECK(error_of(p.fs->lookup(root_ino, "none")) == ErrorCode::not_found);
  CHECK(p.fs.client->counts() == StepCounts{.queries = 1});
  p.look_up({"f", "none"});
  need(p.fs->lookup(root_ino, "f"));
  CHECK(error_of(p.fs->lookup(root_ino, "none")) == ErrorCode::not_found);
  CHECK(p.fs.client->counts() == StepCounts{.queries = 3});
}

TEST_CASE("of a file that was read before its version is read, and the rest if that has changed") {
  Prepared p;
  const auto f = make_file(*p.fs.file_system, root_ino, "f");
  auto other = p.volume.mount();
  const auto mode_of = [](Mount& mount) { return need(mount->lookup(root_ino, "f")).attributes.mode & 0777; };
  const auto change_mode = [f](Mount& mount, std::uint32_t mode) {
    SetAttributes change;
    change.mode = mode;
    need(mount->set_attributes({}, f, change));
  };
  const auto queries_until = [&](std::uint32_t mode) {
    p.volume.clock().advance(std::chrono::seconds(10));
    p.fs.client->reset_record();
    CHECK(mode_of(p.fs) == mode);
    return p.fs.client->counts().queries;
  };
  const auto made_with = mode_of(p.fs);
  CHECK(queries_until(made_with) == 2);
  change_mode(other, 0600);
  CHECK(queries_until(0600) == 3);
  CHECK(queries_until(0600) == 2);
  change_mode(p.fs, 0640);
  CHECK(queries_until(0640) == 3);
  CHECK(queries_until(0640) == 2);
  need(other->unlink(root_ino, "f"));
  CHECK(error_of(p.fs->lookup(root_ino, "f")) == ErrorCode::not_found);
}

TEST_CASE("a lookup of a name that was looked up before has both of its reads in flight at once, for ever") {
  Prepared p;
  make_file(*p.fs.file_system, root_ino, "f");
  p.look_up({"f"});
  p.volume.clock().advance(std::chrono::minutes(30));
  p.fs.client->set_hook([](const StepInfo&) { return Fault{Fault::Kind::hold}; });
  auto found = std::async(std::launch::async, [&] { return p.fs->lookup(root_ino, "f"); });
  CHECK(p.fs.client->wait_for_held(2));
  p.fs.client->set_hook({});
  p.fs.client->release_all();
  CHECK(found.get());
  CHECK(p.fs.client->counts() == StepCounts{.queries = 2});
}

TEST_CASE("a name that another client gave to another inode is found there") {
  Prepared p;
  auto other = p.volume.mount();
  const auto f = make_file(*p.fs.file_system, root_ino, "f");
  const auto g = make_file(*p.fs.file_system, root_ino, "g");
  p.look_up({"f"});
  need(other->rename(root_ino, "g", root_ino, "f", RenameMode::replace));
  CHECK(ino_of(*p.fs.file_system, root_ino, "f") == g);
  CHECK(p.fs.client->counts() == StepCounts{.queries = 3});
  CHECK(f != g);
  p.look_up({"f"});
  need(other->unlink(root_ino, "f"));
  CHECK(error_of(p.fs->lookup(root_ino, "f")) == ErrorCode::not_found);
}

TEST_CASE("attributes that were read before the inode got its name again are not told with that name") {
  Prepared p;
  auto other = p.volume.mount();
  const auto f = make_file(*p.fs.file_system, root_ino, "f");
  p.look_up({"f"});
  p.fs.client->set_hook([&](const StepInfo& info) {
    if (info.object != format::inode_object(root_ino)) return Fault{};
    p.fs.client->set_hook({});  // the inode has been read, its name has not
    need(other->rename(root_ino, "f", root_ino, "away", RenameMode::replace));
    SetAttributes closed;
    closed.mode = 0600;
    need(other->set_attributes({}, f, closed));
    need(other->rename(root_ino, "away", root_ino, "f", RenameMode::replace));
    return Fault{};
  });
  CHECK(need(p.fs->lookup(root_ino, "f")).attributes.mode == 0600);
}

TEST_CASE("getattr is 1 read, also of a directory that memory holds: what another client changed is seen") {
  Prepared p;
  const auto f = make_file(*p.fs.file_system, root_ino, "f");
  const auto l = need(p.fs->make_node({}, root_ino, "l", {FileType::symlink, 0, 0, "to"})).attributes.ino;
  for (const auto& names : {std::vector<std::string>{}, std::vector<std::string>{"f", "l"}}) {
    p.look_up(names);
    need(p.fs->get_attributes(f));
    CHECK(p.fs.client->counts() == StepCounts{.queries = 1});
    p.fs.client->reset_record();
    need(p.fs->get_attributes(l));
    CHECK(p.fs.client->counts() == StepCounts{.queries = 1});
  }
  const auto d = make_dir(*p.fs.file_system, root_ino, "d");
  p.look_up({"d"});
  auto other = p.volume.mount();
  make_dir(*other.file_system, d, "sub");
  const auto reply = need(p.fs->get_attributes(d));
  CHECK(reply.attributes.nlink == 3);
  CHECK(reply.attributes_ttl == std::chrono::seconds(1));
  CHECK(p.fs.client->counts() == StepCounts{.queries = 1});
}

TEST_CASE("create, mkdir and symlink are 2 writes one after the other") {
  Prepared p;
  p.look_up({"f"});
  const auto file = need(p.fs->create({}, root_ino, "f", 0644, O_RDWR));
  CHECK(p.fs.client->counts() == StepCounts{.applies = 2});
  CHECK(p.fs.client->trace() ==
        Trace{"create inode " + format::inode_object(file.entry.attributes.ino), "insert entry Inode.1"});
  p.look_up({"d"});
  make_dir(*p.fs.file_system, root_ino, "d");
  CHECK(p.fs.client->counts() == StepCounts{.applies = 2});
  p.look_up({"l"});
  need(p.fs->make_node({}, root_ino, "l", {FileType::symlink, 0, 0, "to"}));
  CHECK(p.fs.client->counts() == StepCounts{.applies = 2});
}

TEST_CASE("many creates in a row cost 2 writes each, without a lookup of the directory in between") {
  Prepared p;
  p.look_up({"d1", "d2", "f1", "f2"});
  make_dir(*p.fs.file_system, root_ino, "d1");
  make_dir(*p.fs.file_system, root_ino, "d2");
  make_file(*p.fs.file_system, root_ino, "f1");
  make_file(*p.fs.file_system, root_ino, "f2");
  CHECK(p.fs.client->counts() == StepCounts{.applies = 8});
}

TEST_CASE("unlink of a single-link file is 1 write, also right after its create") {
  Prepared p;
  make_file(*p.fs.file_system, root_ino, "f");
  p.look_up({"f"});
  need(p.fs->unlink(root_ino, "f"));
  CHECK(p.fs.client->counts() == StepCounts{.applies = 1});
  make_file(*p.fs.file_system, root_ino, "g");
  p.fs.client->reset_record();
  need(p.fs->unlink(root_ino, "g"));
  CHECK(p.fs.client->counts() == StepCounts{.applies = 1});
}

TEST_CASE("link is 3 writes and the read of the answer, and unlink of one name of two is 2") {
  Prepared p;
  const auto f = make_file(*p.fs.file_system, root_ino, "f");
  const auto object = format::inode_object(f);
  p.look_up({"f", "g"});
  p.volume.clock().advance(std::chrono::milliseconds(1));
  need(p.fs->link(f, root_ino, "g"));
  auto trace = p.fs.client->trace();
  REQUIRE(trace.size() == 4);
  CHECK(trace[0].starts_with("log queue items Session."));
  CHECK(trace[1] == "add link " + object);
  CHECK(trace[2] == "insert entry Inode.1");
  CHECK(p.fs.client->counts() == StepCounts{.applies = 3, .queries = 1});
  p.look_up({"f"});
  need(p.fs->unlink(root_ino, "f"));
  CHECK(p.fs.client->trace() == Trace{"remove entry Inode.1", "change attr " + object});
  CHECK(p.fs.client->counts() == StepCounts{.applies = 2});
}

TEST_CASE("rename in a directory is 1 write, and the moved inode's ctime after the answer") {
  Prepared p;
  make_file(*p.fs.file_system, root_ino, "a");
  make_file(*p.fs.file_system, root_ino, "b");
  p.look_up({"a", "c"});
  const auto a = *ino_of(*p.fs.file_system, root_ino, "a");
  const Trace moved{"rename entries Inode.1", "set ctime " + format::inode_object(a)};
  p.fs.client->reset_record();
  need(p.fs->rename(root_ino, "a", root_ino, "c", RenameMode::replace));
  CHECK(p.fs.client->trace() == moved);
  p.look_up({"c", "b"});
  need(p.fs->rename(root_ino, "c", root_ino, "b", RenameMode::replace));
  CHECK(p.fs.client->trace() == moved);
  p.fs.client->reset_record();
  need(p.fs->rename(root_ino, "b", root_ino, "c", RenameMode::replace));
  CHECK(p.fs.client->trace() == moved);
}

TEST_CASE("a rename across directories is 5 writes one after the other, and one after the answer") {
  Prepared p;
  auto& fs = *p.fs.file_system;
  const auto f = make_file(fs, root_ino, "f"), d = make_dir(fs, root_ino, "d");
  make_file(fs, d, "replaced");
  p.look_up({"f", "d"});
  need(fs.lookup(d, "replaced"));
  p.fs.client->reset_record();
  need(fs.rename(root_ino, "f", d, "replaced", RenameMode::replace));
  const auto from = format::inode_object(root_ino), to = format::inode_object(d), moved = format::inode_object(f);
  auto trace = p.fs.client->trace();
  REQUIRE(trace.size() == 6);
  CHECK(trace[0].starts_with("log queue items Session."));
  trace.erase(trace.begin());
  CHECK(trace == Trace{"point to directory " + moved, "mark entry " + from, "move entry in " + to,
                       "move entry out " + from, "remove decision " + to});
}

TEST_CASE(
    "a rename of a directory to another costs two writes more, and reads: Super, both, and each directory above") {
  Prepared p;
  auto& fs = *p.fs.file_system;
  const auto x = make_dir(fs, root_ino, "x"), d = make_dir(fs, root_ino, "d"), e = make_dir(fs, d, "e");
  p.look_up({"x", "d"});
  p.fs.client->reset_record();
  need(fs.rename(root_ino, "x", e, "y", RenameMode::replace));
  const auto from = format::inode_object(root_ino), to = format::inode_object(e), moved = format::inode_object(x);
  auto trace = p.fs.client->trace();
  std::erase_if(trace, [](const std::string& step) { return step.starts_with("log queue items Session."); });
  CHECK(trace == Trace{"query " + to, "query Super", "take rename lock Super", "query " + to,
                       "query " + format::inode_object(d), "point to directory " + moved, "mark entry " + from,
                       "move entry in " + to, "query " + from, "move entry out " + from, "remove decision " + to,
                       "release rename lock Super"});
}

TEST_CASE("a rename of a directory over one in another directory logs that one, and seals it: two writes more") {
  Prepared p;
  auto& fs = *p.fs.file_system;
  const auto x = make_dir(fs, root_ino, "x"), d = make_dir(fs, root_ino, "d"), y = make_dir(fs, d, "y");
  p.look_up({"x", "d"});
  need(fs.lookup(d, "y"));
  p.fs.client->reset_record();
  need(fs.rename(root_ino, "x", d, "y", RenameMode::replace));
  const auto from = format::inode_object(root_ino), to = format::inode_object(d), moved = format::inode_object(x);
  auto trace = p.fs.client->trace();
  std::erase_if(trace, [](const std::string& step) { return step.starts_with("query "); });
  for (auto& step : trace) step = step.starts_with("log queue items Session.") ? "log queue items" : step;
  CHECK(trace == Trace{"take rename lock Super", "log queue items", "seal " + format::inode_object(y),
                       "log queue items", "point to directory " + moved, "mark entry " + from, "move entry in " + to,
                       "move entry out " + from, "remove decision " + to, "release rename lock Super"});
}

TEST_CASE("rmdir is 1 read and 3 writes") {
  Prepared p;
  const auto d = make_dir(*p.fs.file_system, root_ino, "d");
  p.look_up({"d"});
  need(p.fs->rmdir(root_ino, "d"));
  CHECK(p.fs.client->counts() == StepCounts{.applies = 3, .queries = 1});
  const auto x = format::inode_object(d);
  const auto trace = p.fs.client->trace();
  REQUIRE(trace.size() == 4);
  CHECK(trace[0] == "query " + x);
  CHECK(trace[1].starts_with("log queue items Session."));
  CHECK(trace[2] == "seal " + x);
  CHECK(trace[3] == "remove entry Inode.1");
}

TEST_CASE("the first detaching step in a directory logs its queue item, once") {
  TestVolume volume;
  auto fs = volume.mount();
  for (const std::string name : {"a", "b", "c"}) make_file(*fs.file_system, root_ino, name);
  fs.client->reset_record();
  need(fs->unlink(root_ino, "a"));
  CHECK(fs.client->counts() == StepCounts{.applies = 2});
  need(fs->unlink(root_ino, "b"));
  CHECK(fs.client->counts() == StepCounts{.applies = 3});
}

TEST_CASE("readdir of 1,000 names is 1 read, however small the kernel's buffer") {
  TestVolume volume;
  auto fs = volume.mount();
  for (int i = 0; i < 1000; ++i) make_file(*fs.file_system, root_ino, "file" + std::to_string(i));
  fs.client->reset_record();
  CHECK(listing(*fs.file_system, root_ino, 37).size() == 1002);
  CHECK(fs.client->counts() == StepCounts{.queries = 1});
}

TEST_CASE("a lookup of a name that was listed has both of its reads in flight at once") {
  TestVolume volume;
  auto maker = volume.mount();
  make_file(*maker.file_system, root_ino, "f");
  auto fs = volume.mount();
  listing(*fs.file_system, root_ino);
  fs.client->reset_record();
  fs.client->set_hook([](const StepInfo&) { return Fault{Fault::Kind::hold}; });
  auto found = std::async(std::launch::async, [&] { return fs->lookup(root_ino, "f"); });
  CHECK(fs.client->wait_for_held(2));
  fs.client->set_hook({});
  fs.client->release_all();
  CHECK(found.get());
  CHECK(fs.client->counts() == StepCounts{.queries = 2});
}

TEST_CASE("a listing of 100 names with attributes is 101 reads in 1 + 4 round trips: 32 inodes are read at once") {
  TestVolume volume;
  auto maker = volume.mount();
  for (int i = 0; i < 100; ++i) make_file(*maker.file_system, root_ino, "file" + std::to_string(i));
  FileSystemOptions options;
  options.entry_ttl = std::chrono::seconds(1);
  auto fs = volume.mount(options);
  const auto handle = need(fs->open_directory(root_ino));
  CHECK(fs.client->counts() == StepCounts{.queries = 1});
  std::atomic<unsigned> sent = 0, answered = 0, most_in_flight = 0;
  fs.client->set_hook([&](const StepInfo&) {
    most_in_flight = std::max<unsigned>(most_in_flight, ++sent - answered);
    return Fault{Fault::Kind::hold};
  });
  auto listed = std::async(std::launch::async, [&] {
    return fs->read_directory_plus(handle, 0, [](const DirectoryEntry&) { return true; });
  });
  for (const unsigned in_flight : {32, 32, 32, 4}) {
    REQUIRE(fs.client->wait_for_held(in_flight));
    answered += in_flight;
    fs.client->release_all();
  }
  CHECK(need(listed.get()).size() == 102);
  CHECK(most_in_flight == 32);
  CHECK(fs.client->counts() == StepCounts{.queries = 101});
}

TEST_CASE("chmod and utime of a directory are 1 write and the read of the answer") {
  Prepared p;
  const auto f = make_file(*p.fs.file_system, root_ino, "f");
  make_dir(*p.fs.file_system, root_ino, "d");
  p.look_up({"f", "d"});
  SetAttributes mode;
  mode.mode = 0600;
  need(p.fs->set_attributes({}, f, mode));
  CHECK(p.fs.client->counts() == StepCounts{.applies = 1, .queries = 1});
  SetAttributes times;
  times.mtime = TimeSpec{5, 6};
  const auto d = *ino_of(*p.fs.file_system, root_ino, "d");
  p.fs.client->reset_record();
  CHECK(need(p.fs->set_attributes({}, d, times)).attributes.mtime == TimeSpec{5, 6});
  CHECK(p.fs.client->counts() == StepCounts{.applies = 1, .queries = 1});
}

TEST_CASE("the first extended attribute is 1 write, each further one a read more") {
  Prepared p;
  const auto f = make_file(*p.fs.file_system, root_ino, "f");
  p.look_up({"f"});
  need(p.fs->set_xattr(f, "user.a", "1", XattrMode::create));
  CHECK(p.fs.client->counts() == StepCounts{.applies = 1});
  need(p.fs->set_xattr(f, "user.b", "1", XattrMode::create));
  CHECK(p.fs.client->counts() == StepCounts{.applies = 2, .queries = 1});
}

TEST_CASE("extended attributes are 1 read, whatever memory holds; an open file's capability costs nothing") {
  Prepared p;
  const auto f = make_file(*p.fs.file_system, root_ino, "f");
  p.look_up({"f"});
  auto other = p.volume.mount();
  CHECK(need(p.fs->list_xattrs(f)).empty());
  CHECK(error_of(p.fs->get_xattr(f, "user.a")) == ErrorCode::no_attribute);
  need(other->set_xattr(f, "user.a", "1", XattrMode::create));
  CHECK(need(p.fs->get_xattr(f, "user.a")) == "1");
  CHECK(need(p.fs->list_xattrs(f)) == std::vector<std::string>{"user.a"});
  CHECK(p.fs.client->counts() == StepCounts{.queries = 4});
  const auto open = need(p.fs->open({}, f, O_RDWR));
  p.fs.client->reset_record();
  CHECK(error_of(p.fs->get_xattr(f, "security.capability")) == ErrorCode::no_attribute);
  CHECK(p.fs.client->counts() == StepCounts{});
  close_file(*p.fs.file_system, open.handle);
}
