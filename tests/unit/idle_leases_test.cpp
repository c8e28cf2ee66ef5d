// SPDX-License-Identifier: LGPL-2.1-or-later
// A close that does not wait: what stays after it, for how long, and who is told.
#include <atomic>
#include <thread>

#include "objects/super.h"
#include "support/catch.h"
#include "support/collecting.h"
#include "support/namespace_calls.h"
#include "unit/buffered_mounts.h"

using namespace lccfs;
using namespace lccfs::test;
using std::chrono::seconds;

namespace {

FileSystemOptions closing(unsigned idle_leases = 100) {
  auto options = buffered();
  options.idle_leases = idle_leases;
  options.attributes_ttl = seconds(0);
  return options;
}

OpenFile closed_file(Mount& mount, const std::string& name, const std::string& bytes) {
  const auto file = create_file(*mount.file_system, name);
  need(write_at(*mount.file_system, file.handle, 0, bytes));
  mount.client->reset_record();
  close_file(*mount.file_system, file.handle);
  return file;
}

/// For what is done behind.
template <class Condition>
void wait_until(Condition condition, unsigned most_looks = 10000) {
  bool is_so = condition();
  for (unsigned i = 0; i < most_looks && !is_so; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    is_so = condition();
  }
  CHECK(is_so);
}

template <class Condition>
void tick_until(TestVolume& volume, Mount& mount, seconds later, Condition condition) {
  volume.clock().advance(later);
  wait_until([&] {
    mount->tick();
    return condition();
  });
}

/// The step that releases has begun before it is done.
bool is_leased(TestVolume& volume, Ino ino) {
  return inode_object_of(volume.cluster(), ino).value().xattrs.contains(format::xattr::lease);
}

std::uint64_t size_seen(Mount& mount, const std::string& name) {
  return need(mount->lookup(root_ino, name)).attributes.size_bytes;
}

}  // namespace

TEST_CASE("a close costs nothing, and the file is read, looked up and opened again from memory") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  const auto file = closed_file(mount, "f", "some bytes");
  CHECK(mount.client->counts() == StepCounts{});
  CHECK(size_seen(mount, "f") == 10);
  const auto again = open_again(*mount.file_system, file.ino);
  CHECK(whole(*mount.file_system, again) == "some bytes");
  need(write_at(*mount.file_system, again, 10, ", and more"));
  close_file(*mount.file_system, again);
  CHECK(mount.client->counts().writes == 0);
  CHECK(mount.client->counts().applies == 0);
}

TEST_CASE("cp -a of a small file is three writes and three reads, one after the other, and two writes behind") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  auto& fs = *mount.file_system;
  close_file(fs, create_file(fs, "warm").handle);
  mount.client->reset_record();
  copy_as_cp_does(fs, "f");
  CHECK(mount.client->counts() == StepCounts{.applies = 3, .queries = 3});
}

TEST_CASE("whoever opens, looks up or stats the file elsewhere sees what was answered before the close") {
  TestVolume volume;
  volume.clock().patience = 20;
  auto writer = volume.mount(closing());
  auto reader = volume.mount(closing());
  closed_file(writer, "looked up", "1234");
  CHECK(size_seen(reader, "looked up") == 4);
  CHECK(reader.client->counts().notifies == 1);
  const auto stated = closed_file(writer, "stated", "12345");
  CHECK(need(reader->get_attributes(stated.ino)).attributes.size_bytes == 5);
  const auto opened = closed_file(writer, "opened", "123456");
  const auto handle = open_again(*reader.file_system, opened.ino, O_RDONLY);
  CHECK(whole(*reader.file_system, handle) == "123456");
}

TEST_CASE("a listing asks for many files with one question") {
  TestVolume volume;
  volume.clock().patience = 20;
  auto writer = volume.mount(closing());
  auto options = closing();
  options.entry_ttl = seconds(1);
  auto reader = volume.mount(options);
  for (unsigned i = 0; i < 40; ++i) closed_file(writer, "f" + std::to_string(i), std::string(i + 1, 'x'));
  const auto handle = need(reader->open_directory(root_ino));
  reader.client->reset_record();
  const auto listed = need(reader->read_directory_plus(handle, 0, [](const DirectoryEntry&) { return true; }));
  CHECK(reader.client->counts().notifies == 1);
  for (const auto& one : listed) {
    if (!one.entry.name.starts_with("f")) continue;
    REQUIRE(one.reply);
    CHECK(one.reply->attributes.size_bytes == std::stoul(one.entry.name.substr(1)) + 1);
  }
  reader->release_directory(handle);
}

TEST_CASE("a holder that says nothing delays a listing once, and then what is stored is told") {
  TestVolume volume;
  auto writer = volume.mount(closing());
  auto reader = volume.mount(closing());
  for (const auto* name : {"a", "b", "c"}) closed_file(writer, name, "bytes");
  writer.client->set_deaf(true);
  const auto began = volume.clock().elapsed();
  for (const auto* name : {"a", "b", "c"}) CHECK(size_seen(reader, name) == 0);
  CHECK(volume.clock().elapsed() - began <= seconds(2));
  CHECK(reader.client->counts().notifies == 1);
  writer.client->set_deaf(false);
  volume.clock().advance(seconds(6));
  CHECK(size_seen(reader, "a") == 5);
}

TEST_CASE("a lease that is idle for five seconds is released with everything stored") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  const auto file = closed_file(mount, "f", "some bytes");
  mount->tick();
  CHECK(mount.client->counts() == StepCounts{});
  volume.clock().advance(seconds(6));
  mount->tick();  // a second one might store while the first one's release is under way
  wait_until([&] { return !is_leased(volume, file.ino); });
  CHECK(mount.client->counts() == StepCounts{.applies = 1, .writes = 1});
  auto other = volume.mount();
  CHECK(whole(*other.file_system, open_again(*other.file_system, file.ino, O_RDONLY)) == "some bytes");
  CHECK(other.client->counts().notifies == 0);
}

TEST_CASE("beyond the limit, and for a file that another client uses, a close stores and releases") {
  TestVolume volume;
  auto mount = volume.mount(closing(2));
  closed_file(mount, "a", "bytes");
  closed_file(mount, "b", "bytes");
  CHECK(mount.client->counts() == StepCounts{});
  closed_file(mount, "c", "bytes");
  CHECK(mount.client->counts() == StepCounts{.applies = 1, .writes = 1});

  auto writer = volume.mount(closing());
  auto reader = volume.mount(closing());
  const auto shared = create_file(*writer.file_system, "shared");
  need(write_at(*writer.file_system, shared.handle, 0, "bytes"));
  open_again(*reader.file_system, shared.ino, O_RDONLY);
  writer.client->reset_record();
  close_file(*writer.file_system, shared.handle);
  CHECK(writer.client->counts().applies == 1);
}

TEST_CASE("where an eighth of the limit is kept, a close does not wait, and begins to store and release") {
  TestVolume volume;
  auto mount = volume.mount(closing(80));
  std::vector<OpenFile> files;
  for (unsigned i = 0; i < 10; ++i) files.push_back(closed_file(mount, std::to_string(i), "bytes"));
  for (const auto& file : files) CHECK(is_leased(volume, file.ino));
  CHECK(mount->counts().leases == 10);
  const auto one_more = closed_file(mount, "one more", "its bytes");
  wait_until([&] { return !is_leased(volume, one_more.ino); });
  CHECK(inode_object_of(volume.cluster(), one_more.ino).has_value());
  wait_until([&] { return mount->counts().leases == 10; });
}

TEST_CASE("times and a size that are set after the close cost no step of their own, and are stored with the lease") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  const auto file = closed_file(mount, "f", "some bytes");
  SetAttributes times;
  times.mtime = TimeSpec{1234, 5};
  need(mount->set_attributes({}, file.ino, times));
  CHECK(mount.client->counts().applies == 0);
  tick_until(volume, mount, seconds(6), [&] { return !is_leased(volume, file.ino); });
  auto other = volume.mount();
  CHECK(need(other->get_attributes(file.ino)).attributes.mtime == TimeSpec{1234, 5});
}

TEST_CASE("a collector leaves a removed file alone while bytes of it may be on their way, and not longer") {
  TestVolume volume;
  auto writer = volume.mount(closing());
  auto other = volume.mount(closing());
  const auto file = closed_file(writer, "f", "some bytes");
  need(other->unlink(root_ino, "f"));
  writer.client->set_hook(holds_writes());
  CHECK(collect(volume.cluster(), volume.clock()).inodes_removed == 0);
  writer.client->set_hook(nullptr);
  writer.client->release_all();
  wait_until([&] { return collect(volume.cluster(), volume.clock()).inodes_removed == 1; });
  CHECK_FALSE(inode_object_of(volume.cluster(), file.ino));
}

TEST_CASE("who removes a file that it closed just now releases it at once") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  closed_file(mount, "f", "some bytes");
  need(mount->unlink(root_ino, "f"));
  wait_until([&] { return mount.client->counts().writes == 1 && mount.client->counts().applies != 0; });
  wait_until([&] { return collect(volume.cluster(), volume.clock()).inodes_removed == 1; });
}

TEST_CASE("a file that another client has written and closed is stored before it replaces another") {
  TestVolume volume;
  auto writer = volume.mount(closing());
  auto other = volume.mount(closing());
  closed_file(other, "f", "old");
  const auto file = closed_file(writer, "f.tmp", "new and longer");
  need(other->rename(root_ino, "f.tmp", root_ino, "f", RenameMode::replace));
  writer.client->crash();
  volume.clock().advance(seconds(61));
  CHECK(read_elsewhere(volume, file.ino) == "new and longer");
}

TEST_CASE("a file that was written and closed is stored before it gets another name") {
  TestVolume volume;
  auto writer = volume.mount(closing());
  auto other = volume.mount(closing());
  const auto mine = closed_file(writer, "f.tmp", "new and longer");
  need(writer->link(mine.ino, root_ino, "f"));
  const auto another = closed_file(writer, "g.tmp", "also new");
  need(other->link(another.ino, root_ino, "g"));
  writer.client->crash();
  volume.clock().advance(seconds(61));
  CHECK(read_elsewhere(volume, mine.ino) == "new and longer");
  CHECK(read_elsewhere(volume, another.ino) == "also new");
}

TEST_CASE("a file that another client begins to write beside a link is stored before it gets the name") {
  TestVolume volume;
  auto writer = volume.mount(closing());
  auto other = volume.mount(closing());
  const auto ino = make_file(*writer.file_system, root_ino, "f");
  need(other->lookup(root_ino, "f"));
  const auto write = before("add link", [&] {
    const auto handle = open_again(*writer.file_system, ino);
    need(write_at(*writer.file_system, handle, 0, "written meanwhile"));
    close_file(*writer.file_system, handle);
    CHECK(is_leased(volume, ino));
  });
  const auto die = before("insert entry", [&] { writer.client->crash(); });
  other.client->set_hook([&](const StepInfo& info) {
    write(info);
    return die(info);
  });
  need(other->link(ino, root_ino, "g"));
  volume.clock().advance(seconds(61));
  CHECK(read_elsewhere(volume, ino) == "written meanwhile");
}

TEST_CASE("a link continues with what is stored if the client that writes the file says nothing, and fences nobody") {
  TestVolume volume;
  auto writer = volume.mount(closing());
  auto other = volume.mount(closing());
  const auto file = closed_file(writer, "f", "some bytes");
  const bool dies = GENERATE(true, false);
  if (dies) {
    writer.client->crash();
  } else {
    writer.client->set_deaf(true);
  }
  const auto began = volume.clock().elapsed();
  const auto told = need(other->link(file.ino, root_ino, "g")).attributes;
  CHECK(told.nlink == 2);
  CHECK(told.size_bytes == 0);
  CHECK(volume.clock().elapsed() - began <= seconds(3));
  CHECK(other.client->counts().fences == 0);
  if (dies) return;
  writer.client->set_deaf(false);
  volume.clock().advance(seconds(6));
  CHECK(size_seen(other, "g") == 10);
}

TEST_CASE("an error after the last close is told to the next that opens the file, who finds the bytes") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  const auto file = closed_file(mount, "f", "some bytes");
  mount.client->set_hook(fails_writes(ErrorCode::io));
  tick_until(volume, mount, seconds(6), [&] { return mount.client->counts().writes >= 2; });
  const auto again = open_again(*mount.file_system, file.ino);
  CHECK(whole(*mount.file_system, again) == "some bytes");
  mount.client->set_hook(nullptr);
  CHECK(code_of(mount->fsync(again, false)) == ErrorCode::io);
  need(mount->fsync(again, false));
  close_file(*mount.file_system, again);
  const auto third = open_again(*mount.file_system, file.ino);
  need(mount->fsync(third, false));
  CHECK(read_elsewhere(volume, file.ino) == "some bytes");
}

TEST_CASE("a look from elsewhere loses no bytes that cannot be stored for now") {
  TestVolume volume;
  auto writer = volume.mount(closing());
  auto reader = volume.mount(closing());
  const auto file = closed_file(writer, "f", "some bytes");
  writer.client->set_hook(fails_writes(ErrorCode::no_space));
  CHECK(size_seen(reader, "f") == 0);
  writer.client->set_hook(nullptr);
  CHECK(whole(*writer.file_system, open_again(*writer.file_system, file.ino)) == "some bytes");
}

TEST_CASE("where no file can be stored, no more bytes are kept after the close than may be dirty") {
  TestVolume volume;
  auto options = closing();
  options.dirty_limit_bytes = 16 << 10;
  auto mount = volume.mount(options);
  mount.client->set_hook(fails_writes(ErrorCode::io));
  const std::string bytes(10 << 10, 'b');
  for (const char* name : {"first", "second"}) {
    const auto file = create_file(*mount.file_system, name);
    need(write_at(*mount.file_system, file.handle, 0, bytes));
    CHECK(code_of(mount->fsync(file.handle, false)) == ErrorCode::io);
    mount->release(file.handle);
  }
  CHECK(size_seen(mount, "first") == bytes.size());
  CHECK(size_seen(mount, "second") == 0);
}

TEST_CASE("bytes that cannot be stored are kept for a minute after the close, and then given up") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  const auto file = closed_file(mount, "f", "some bytes");
  mount.client->set_hook(fails_writes(ErrorCode::io));
  tick_until(volume, mount, seconds(6), [&] { return mount.client->counts().writes > 0; });
  for (unsigned i = 0; i < 9; ++i) {
    volume.clock().advance(seconds(6));
    mount->tick();
  }
  CHECK(whole(*mount.file_system, open_again(*mount.file_system, file.ino, O_RDONLY)) == "some bytes");
  wait_until([&] {
    volume.clock().advance(seconds(6));
    mount->tick();
    return !is_leased(volume, file.ino);
  });
  mount.client->set_hook(nullptr);
  CHECK(read_elsewhere(volume, file.ino).empty());
}

TEST_CASE("on a volume that is nearly full, writes and closes wait, so that each program hears of its own") {
  ScriptedCluster::Options store;
  SECTION("of bytes") { store.total_bytes = 1 << 20; }
  SECTION("of bytes where its metadata is") { store.metadata_total_bytes = 1 << 20; }
  SECTION("of objects, of which a quota has a few thousand left") { store.most_objects = 16'000; }
  SECTION("of objects, of which a quota has less than a hundredth left") {
    store.most_objects = 10'000'000;
    store.other_objects = 9'950'000;
  }
  TestVolume volume({}, store);
  auto mount = volume.mount(closing(10000));
  const auto file = stored_file(mount, "some bytes");
  close_file(*mount.file_system, file.handle);
  mount->tick();  // it asks for the room, behind; nothing else stores or releases so few
  wait_until(
      [&] {
        const auto again = open_again(*mount.file_system, file.ino);
        mount.client->reset_record();
        need(write_at(*mount.file_system, again, 0, "other bytes"));
        close_file(*mount.file_system, again);
        return mount.client->counts().writes == 1 && !is_leased(volume, file.ino);
      },
      1000);
}

TEST_CASE("unmounting stores and releases what was closed") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  std::vector<OpenFile> files;
  for (unsigned i = 0; i < 50; ++i) files.push_back(closed_file(mount, "f" + std::to_string(i), "bytes"));
  need(mount->unmount());
  mount.file_system.reset();
  for (const auto& file : files) CHECK(read_elsewhere(volume, file.ino) == "bytes");
}

TEST_CASE("an end of the mount that loses what was answered says so, and leaves nothing to be cleaned up") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  const auto lost = closed_file(mount, "lost", "some bytes");
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  CHECK(code_of(mount->unmount()) == ErrorCode::no_space);
  mount.file_system.reset();
  CHECK_FALSE(is_leased(volume, lost.ino));
  const auto store = volume.new_client();
  CHECK(need(objects::read_super(objects::reader_of(*store), objects::Instances::all)).ranges.front().entries.empty());
}

TEST_CASE("what is lost while only readers have the file open is told at the end of the mount") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  const auto file = closed_file(mount, "f", "some bytes");
  const auto reader = open_again(*mount.file_system, file.ino, O_RDONLY);
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  tick_until(volume, mount, seconds(6), [&] {
    volume.clock().advance(seconds(6));
    return !is_leased(volume, file.ino);
  });
  mount.client->set_hook(nullptr);
  close_file(*mount.file_system, reader);
  CHECK(code_of(mount->unmount()) == ErrorCode::no_space);
}

TEST_CASE("a removed file whose bytes find no room gives its lease back soon, and a collector makes the room") {
  const bool is_closed_first = GENERATE(true, false);
  TestVolume volume;
  auto mount = volume.mount(closing());
  const auto file = create_file(*mount.file_system, "big");
  need(write_at(*mount.file_system, file.handle, 0, "some bytes"));
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  CHECK(code_of(mount->fsync(file.handle, false)) == ErrorCode::no_space);
  if (is_closed_first) mount->release(file.handle);
  need(mount->unlink(root_ino, "big"));
  if (!is_closed_first) mount->release(file.handle);
  tick_until(volume, mount, seconds(6), [&] { return !is_leased(volume, file.ino); });
  for (unsigned pass = 0; pass < 3; ++pass) collect(volume.cluster(), volume.clock());
  CHECK_FALSE(inode_object_of(volume.cluster(), file.ino));
}

TEST_CASE("bytes of a removed file that find no room stay while somebody may read them") {
  TestVolume volume;
  volume.clock().patience = 20;
  auto options = closing();
  options.attributes_ttl = seconds(60);
  auto mount = volume.mount(options);
  auto other = volume.mount(closing());
  const auto file = stored_file(mount, "old");
  enum class Reader { by_another_name, here, elsewhere };
  const auto reads = GENERATE(Reader::by_another_name, Reader::here, Reader::elsewhere);
  const bool is_counted = GENERATE(false, true);  // by a collector: it has one link, again
  if (reads == Reader::by_another_name) {
    need(other->link(need(other->lookup(root_ino, "f")).attributes.ino, root_ino, "link"));
  }
  need(write_at(*mount.file_system, file.handle, 3, " and new"));
  std::atomic<unsigned> tries = 0;
  mount.client->set_hook([&tries](const StepInfo& info) {
    if (info.kind != StepKind::write) return Fault{};
    ++tries;
    return Fault{Fault::Kind::fail, ErrorCode::no_space};
  });
  CHECK(code_of(mount->fsync(file.handle, false)) == ErrorCode::no_space);
  auto& fs = reads == Reader::here ? *mount.file_system : *other.file_system;
  std::optional<HandleId> reader;
  if (reads != Reader::by_another_name) reader = open_again(fs, file.ino, O_RDONLY);
  mount->release(file.handle);
  need(mount->unlink(root_ino, "f"));
  for (unsigned pass = 0; is_counted && pass < 3; ++pass) collect(volume.cluster(), volume.clock());
  unsigned looks = 0;
  wait_until([&, before = tries.load()] {
    if (++looks % 100 == 0 && looks <= 800) volume.clock().advance(seconds(6));  // less than a minute in all
    mount->tick();
    return tries > before + 2;
  });
  mount.client->set_hook(nullptr);
  if (!reader) reader = open_again(fs, file.ino, O_RDONLY);
  CHECK(whole(fs, *reader) == "old and new");
  fs.release(*reader);
}

TEST_CASE("nobody misses what is lost of a file that was removed") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  closed_file(mount, "removed", "some bytes");
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  need(mount->unlink(root_ino, "removed"));
  need(mount->unmount());
}

TEST_CASE("the end of a mount does not repeat the error that a close has told") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, "some bytes"));
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  CHECK(code_of(mount->fsync(file.handle, false)) == ErrorCode::no_space);
  mount->release(file.handle);
  need(mount->unmount());
}

TEST_CASE("the end of a mount tells of what only a process has heard of that was ending") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  need(write_at(fs, file.handle, 0, "some bytes"));
  std::atomic<unsigned> tries = 0;
  mount.client->set_hook([&tries](const StepInfo& info) {
    if (info.kind != StepKind::write) return Fault{};
    ++tries;
    return Fault{Fault::Kind::fail, ErrorCode::no_space};
  });
  tick_until(volume, mount, seconds(6), [&] { return tries != 0; });
  CHECK(code_of(fs.flush(file.handle, [] { return false; })) == ErrorCode::no_space);
  fs.release(file.handle);
  std::optional<ErrorCode> at_the_end = ErrorCode::no_space;
  SECTION("and nobody since") {}
  SECTION("but not if a program has opened the file since, and heard of it") {
    const auto again = open_again(fs, file.ino);
    CHECK(code_of(fs.flush(again)) == ErrorCode::no_space);
    fs.release(again);
    at_the_end.reset();
  }
  tick_until(volume, mount, seconds(6), [&] {
    volume.clock().advance(seconds(6));
    return !is_leased(volume, file.ino);
  });
  mount.client->set_hook(nullptr);
  CHECK(code_of(mount->unmount()) == at_the_end);
}

TEST_CASE("who asks later is not answered by what was stored for an earlier question") {
  TestVolume volume;
  auto writer = volume.mount(closing());
  auto first = volume.mount(closing());
  auto second = volume.mount(closing());
  const auto file = stored_file(writer, "1234");
  need(write_at(*writer.file_system, file.handle, 4, "56"));
  writer.client->set_hook(holds_writes());
  std::uint64_t seen = 0;
  std::thread looks([&] { need(first->get_attributes(file.ino)); });
  REQUIRE(writer.client->wait_for_held(1));
  need(write_at(*writer.file_system, file.handle, 6, "78"));
  std::thread looks_later([&] { seen = need(second->get_attributes(file.ino)).attributes.size_bytes; });
  wait_until([&] { return second.client->counts().notifies == 1; });
  writer.client->set_hook(nullptr);
  writer.client->release_all();
  looks.join();
  looks_later.join();
  CHECK(seen == 8);
}

TEST_CASE("while a lease is being released, what another client has done since is seen") {
  TestVolume volume;
  auto mount = volume.mount(closing());
  auto other = volume.mount();
  const auto file = closed_file(mount, "f", "old");
  std::atomic<std::uint64_t> seen = 0;
  std::atomic<unsigned> releases = 0;
  mount.client->set_hook([&](const StepInfo& info) {
    if (info.step != "release lease" || ++releases > 2) return Fault{};
    if (releases == 1) return Fault{Fault::Kind::lost_answer_applied};
    const auto handle = open_again(*other.file_system, file.ino);
    need(write_at(*other.file_system, handle, 0, "new and longer"));
    close_file(*other.file_system, handle);
    seen = size_seen(mount, "f");
    return Fault{};
  });
  tick_until(volume, mount, seconds(6), [&] { return releases >= 2; });
  need(mount->unmount());
  CHECK(seen == 14);
}

namespace {
/// A file that was closed, and whose release has failed once, though the store may have done it.
struct FailedRelease {
  TestVolume volume;
  Mount mount = volume.mount(closing());
  Mount other = volume.mount();
  OpenFile file = closed_file(mount, "f", "old");
  HandleId reader = open_again(*mount.file_system, file.ino, O_RDONLY);
  std::shared_ptr<ScriptedClient> store = volume.new_client();

  FailedRelease(bool is_done, ErrorCode code) {
    std::atomic<bool> has_failed = false;
    mount.client->set_hook([&](const StepInfo& info) {
      if (info.step != "release lease") return Fault{};
      if (is_done) need(store->apply(*info.txn));
      mount.client->reset_record();  // here: who has failed looks at once what is there
      has_failed = true;
      return Fault{Fault::Kind::fail, code};
    });
    volume.clock().advance(seconds(6));
    mount->tick();  // the next one would store what this release could not
    wait_until([&] { return has_failed.load(); });
    mount.client->set_hook(nullptr);
    CHECK(is_leased(volume, file.ino) == !is_done);
  }
};
}  // namespace

TEST_CASE("after a release that failed, though it was done, nothing is read or written under the old lease") {
  FailedRelease f(true, ErrorCode::io);
  auto& fs = *f.mount.file_system;
  const auto theirs = open_again(*f.other.file_system, f.file.ino);
  need(write_at(*f.other.file_system, theirs, 0, "new and longer"));
  SECTION("a read") { CHECK(whole(fs, f.reader) == "new and longer"); }
  SECTION("a search for a hole") { CHECK(need(fs.seek(f.reader, 0, SeekTo::hole)) == 14); }
  SECTION("a write") {
    const auto mine = open_again(fs, f.file.ino);
    need(write_at(fs, mine, 0, "NEW"));
    CHECK(f.other.client->trace().back() == "release lease " + format::inode_object(f.file.ino));
    need(fs.fsync(mine, true));
    CHECK(whole(*f.other.file_system, theirs) == "NEW and longer");
  }
  SECTION("an fsync") {
    const auto mine = open_again(fs, f.file.ino);
    need(fs.fsync(mine, false));
    CHECK(need(fs.get_attributes(f.file.ino)).attributes.size_bytes == 14);
  }
}

TEST_CASE("after a release that failed, as the store is full, the lease is ours, and one read tells so") {
  FailedRelease f(false, ErrorCode::no_space);
  auto& fs = *f.mount.file_system;
  f.mount.client->set_hook([](const StepInfo& info) {
    return info.kind == StepKind::apply ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  CHECK(whole(fs, f.reader) == "old");
  CHECK(f.mount.client->counts().queries == 1);
  const auto mine = open_again(fs, f.file.ino);
  need(write_at(fs, mine, 3, " and new"));
  CHECK(whole(fs, f.reader) == "old and new");
  CHECK(f.mount.client->counts().applies == 0);
  f.mount.client->set_hook(nullptr);
}

TEST_CASE("a file whose writer has died without a sync occupies some space: archivers take none for one hole") {
  TestVolume volume(small_objects());
  auto writer = volume.mount();
  const auto file = create_file(*writer.file_system, "f");
  SetAttributes size;
  size.size_bytes = 4 * object_bytes;
  need(writer->set_attributes({}, file.ino, size));
  need(write_with(O_DIRECT, *writer.file_system, file.handle, 0, "direct"));  // its object was mapped at birth
  writer.client->crash();
  volume.clock().advance(seconds(61));
  auto other = volume.mount();
  const auto handle = open_again(*other.file_system, file.ino);
  need(other->set_attributes({}, file.ino, size));
  need(other->fsync(handle, false));
  CHECK(need(other->get_attributes(file.ino)).attributes.blocks_512 != 0);
}

TEST_CASE("a file whose writer has died before its first sync occupies nothing: what was there is past its end") {
  TestVolume volume(small_objects());
  auto writer = volume.mount();
  const auto file = create_file(*writer.file_system, "f");
  need(write_with(O_DIRECT, *writer.file_system, file.handle, 0, "direct"));
  writer.client->crash();
  volume.clock().advance(seconds(61));
  auto other = volume.mount();
  SetAttributes size;
  size.size_bytes = 4 * object_bytes;
  need(other->set_attributes({}, file.ino, size));
  const auto told = need(other->get_attributes(file.ino)).attributes;
  CHECK(told.size_bytes == 4 * object_bytes);
  CHECK(told.blocks_512 == 0);
}
