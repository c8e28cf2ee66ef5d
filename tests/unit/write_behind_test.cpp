// SPDX-License-Identifier: LGPL-2.1-or-later
// Writes that are answered before the store has them.
#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "base/blocking.h"
#include "format/object_names.h"
#include "fs/file_node.h"
#include "fs/write_buffer.h"
#include "instance/instance.h"
#include "objects/inode.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/hooks.h"
#include "support/log_lines.h"
#include "support/test_volume.h"
#include "unit/buffered_mounts.h"

using namespace lccfs;
using namespace lccfs::test;

TEST_CASE("a buffered write is answered before the store has it, and read back") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "0123456789");
  need(write_at(*mount.file_system, file.handle, 3, "abc"));
  need(write_at(*mount.file_system, file.handle, 8, "xyz"));
  CHECK(mount.client->counts() == StepCounts{});
  CHECK(whole(*mount.file_system, file.handle) == "012abc67xyz");
  CHECK(need(mount->get_attributes(file.ino)).attributes.size_bytes == 11);
  CHECK(need(read_at(*mount.file_system, file.handle, 4, 2)) == "bc");
}

TEST_CASE("a client that has learnt that it is fenced answers no write, append or change of times from memory") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  auto& fs = *mount.file_system;
  const auto file = stored_file(mount, "0123");
  need(write_with(O_APPEND, fs, file.handle, 0, "45"));
  const auto rescue = volume.new_client();
  need(rescue->fence(mount.client->identity()));
  need(rescue->query({.object = format::inode_object(root_ino)}));
  CHECK(code_of(fs.lookup(root_ino, "none")) == ErrorCode::fenced);
  CHECK(code_of(write_with(0, fs, file.handle, 0, "x")) == ErrorCode::fenced);
  CHECK(code_of(write_with(O_APPEND, fs, file.handle, 0, "x")) == ErrorCode::fenced);
  SetAttributes times;
  times.mtime = TimeSpec{1, 0};
  CHECK(code_of(fs.set_attributes({}, file.ino, times)) == ErrorCode::fenced);
}

TEST_CASE("bytes that are all buffered are read without the store") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, std::string(100, 'o'));
  need(write_at(*mount.file_system, file.handle, 0, "abc"));
  need(write_at(*mount.file_system, file.handle, 3, "def"));
  CHECK(need(read_at(*mount.file_system, file.handle, 1, 4)) == "bcde");
  CHECK(mount.client->counts() == StepCounts{});
}

TEST_CASE("of a new file that was only buffered the store is asked for nothing, gaps included; then for what it got") {
  for (const bool is_sent : {false, true}) {
    TestVolume volume;
    auto mount = volume.mount(buffered());
    const auto file = create_file(*mount.file_system, "f");
    need(write_at(*mount.file_system, file.handle, 100, "first"));
    if (is_sent) need(mount->fsync(file.handle, false));
    need(write_at(*mount.file_system, file.handle, 5000, "second"));
    mount.client->reset_record();
    const auto all = std::string(100, '\0') + "first" + std::string(4895, '\0') + "second";
    CHECK(whole(*mount.file_system, file.handle) == all);
    CHECK(mount.client->counts() == StepCounts{.reads = is_sent ? 1U : 0U});
  }
}

TEST_CASE("the store is asked for what was written past the buffer of a new file, directly or by a copy") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered());
  auto& fs = *mount.file_system;
  const auto written = create_file(fs, "written");
  need(write_at(fs, written.handle, 10, "buffered"));
  need(write_at(fs, open_again(fs, written.ino, O_WRONLY | O_DIRECT), 0, "direct"));
  CHECK(whole(fs, written.handle) == "direct" + std::string(4, '\0') + "buffered");
  const auto source = create_file(fs, "source"), copy = create_file(fs, "copy");
  const std::string objects(2 * object_bytes, 'o');
  need(write_at(fs, source.handle, 0, objects));
  need(mount->copy_file_range({}, source.handle, 0, copy.handle, 0, objects.size()));
  CHECK(whole(fs, copy.handle) == objects);
}

TEST_CASE("writes side by side, and of the same bytes, cost the store one until they are synced") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, std::string(8192, 'o'));
  for (unsigned i = 0; i < 64; ++i) need(write_at(*mount.file_system, file.handle, i * 128, std::string(128, 'a')));
  for (unsigned i = 0; i < 10; ++i) need(write_at(*mount.file_system, file.handle, 1000, std::string(100, 'b')));
  need(mount->fsync(file.handle, true));
  CHECK(mount.client->counts() == StepCounts{.writes = 1});
  std::string expected(8192, 'a');
  expected.replace(1000, 100, std::string(100, 'b'));
  CHECK(read_elsewhere(volume, file.ino) == expected);
}

TEST_CASE("writes that leave gaps keep what lies between them") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, std::string(40, 'o'));
  need(write_at(*mount.file_system, file.handle, 30, "ccc"));
  need(write_at(*mount.file_system, file.handle, 10, "aaaa"));
  need(write_at(*mount.file_system, file.handle, 12, std::string(19, 'b')));
  need(write_at(*mount.file_system, file.handle, 9, "zz"));
  const std::string expected = std::string(9, 'o') + "zza" + std::string(19, 'b') + "cc" + std::string(7, 'o');
  CHECK(whole(*mount.file_system, file.handle) == expected);
  need(mount->fsync(file.handle, false));
  CHECK(mount.client->counts().writes == 1);
  CHECK(read_elsewhere(volume, file.ino) == expected);
}

TEST_CASE("pieces apart cost the store one step for 256 of them, and none is lost where a step fails") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  std::string expected(8192, 'o');
  const auto file = stored_file(mount, expected);
  const auto write_pieces = [&](char letter) {
    for (unsigned at = 0; at < 600 * 8; at += 8) {
      need(write_at(*mount.file_system, file.handle, at, std::string(3, letter)));
      expected.replace(at, 3, std::string(3, letter));
    }
  };
  write_pieces('a');
  need(mount->fsync(file.handle, true));
  CHECK(mount.client->counts() == StepCounts{.writes = 3});
  CHECK(whole(*mount.file_system, file.handle) == expected);
  write_pieces('b');
  mount.client->set_hook([steps = std::make_shared<std::atomic<int>>(0)](const StepInfo& info) {
    return info.kind == StepKind::write && ++*steps == 2 ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  CHECK_FALSE(mount->fsync(file.handle, true));
  CHECK(whole(*mount.file_system, file.handle) == expected);
  mount.client->set_hook(nullptr);
  need(mount->fsync(file.handle, true));
  CHECK(read_elsewhere(volume, file.ino) == expected);
}

TEST_CASE("a size is stored after the bytes below it") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "short");
  need(write_at(*mount.file_system, file.handle, 5, " and long"));
  need(mount->fsync(file.handle, false));
  CHECK(mount.client->counts() == StepCounts{.applies = 1, .writes = 1});
  CHECK(steps_of(mount).front() == "write");
}

TEST_CASE("a size that is stored beside new writes covers only what was written before") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "a");
  need(write_at(*mount.file_system, file.handle, 1, std::string(99, 'b')));
  mount.client->set_hook(
      before("write", [&] { need(write_at(*mount.file_system, file.handle, 100, std::string(100, 'c'))); }));
  need(mount->fsync(file.handle, false));
  mount.client->crash();
  volume.clock().advance(std::chrono::seconds(61));
  CHECK(read_elsewhere(volume, file.ino) == "a" + std::string(99, 'b'));
}

TEST_CASE("as much as fills a unit goes out at once") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, std::string(3 * object_bytes, 'o'));
  for (unsigned i = 0; i < 3; ++i) {
    need(write_at(*mount.file_system, file.handle, i * object_bytes / 2, std::string(object_bytes / 2, 'n')));
  }
  CHECK(mount.client->counts() == StepCounts{.writes = 1});
}

TEST_CASE("a unit that is full waits until older bytes of it have reached the store") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, std::string(object_bytes, 'o'));
  mount.client->set_hook(holds_writes());
  need(write_at(*mount.file_system, file.handle, 0, std::string(object_bytes, '1')));
  need(write_at(*mount.file_system, file.handle, 0, std::string(object_bytes, '2')));
  const auto sent = mount.client->counts().writes;
  mount.client->set_hook(nullptr);
  while (!mount.client->held().empty()) mount.client->release_all();
  CHECK(sent == 1);
  need(mount->fsync(file.handle, true));
  CHECK(read_elsewhere(volume, file.ino) == std::string(object_bytes, '2'));
}

TEST_CASE("bytes that are written while older ones are on their way reach the store after them") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "oooo");
  mount.client->set_hook(holds_writes());
  need(write_at(*mount.file_system, file.handle, 0, "1111"));
  std::thread syncs([&] { need(mount->fsync(file.handle, true)); });
  REQUIRE(mount.client->wait_for_held(1));
  mount.client->set_hook(nullptr);
  need(write_at(*mount.file_system, file.handle, 1, "22"));
  CHECK(whole(*mount.file_system, file.handle) == "1221");
  std::thread syncs_both([&] { need(mount->fsync(file.handle, true)); });
  const auto on_their_way = mount.client->held().size();
  mount.client->release_all();
  syncs.join();
  syncs_both.join();
  CHECK(on_their_way == 1);
  CHECK(read_elsewhere(volume, file.ino) == "1221");
}

TEST_CASE("what stays dirty goes to the store after five seconds") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "old");
  volume.clock().advance(std::chrono::seconds(1));
  need(write_at(*mount.file_system, file.handle, 0, "new"));
  mount->tick();
  CHECK(mount.client->counts().writes == 0);
  volume.clock().advance(std::chrono::seconds(6));
  mount->tick();
  const auto stored = [&] { return mount.client->counts() == StepCounts{.applies = 1, .writes = 1}; };
  for (int i = 0; i < 10000 && !stored(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(stored());
}

TEST_CASE("direct and synchronous writes come after what is buffered of their range, and leave the rest") {
  for (const int flags : {O_DIRECT, O_DSYNC}) {
    TestVolume volume(small_objects());
    auto mount = volume.mount(buffered());
    const auto file = stored_file(mount, std::string(2 * object_bytes, 'o'));
    need(write_at(*mount.file_system, file.handle, 0, "buffered"));
    need(write_at(*mount.file_system, file.handle, object_bytes, "apart"));
    need(write_with(flags, *mount.file_system, file.handle, 4, "direct"));
    if (flags == O_DIRECT) CHECK(mount.client->counts().writes == 2);
    CHECK(need(read_at(*mount.file_system, file.handle, 0, 12)) == "buffdirectoo");
    close_file(*mount.file_system, file.handle);
    const auto read = read_elsewhere(volume, file.ino);
    CHECK(read.substr(0, 12) == "buffdirectoo");
    CHECK(read.substr(object_bytes, 6) == "aparto");
  }
}

TEST_CASE("an append is buffered at the end as it is then") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "one ");
  need(write_at(*mount.file_system, file.handle, 4, "two "));
  need(write_with(O_APPEND, *mount.file_system, file.handle, 0, "three"));
  CHECK(mount.client->counts() == StepCounts{});
  close_file(*mount.file_system, file.handle);
  CHECK(read_elsewhere(volume, file.ino) == "one two three");
}

TEST_CASE("a buffered append that is told an error leaves nothing of itself") {
  TestVolume volume(small_objects());
  std::promise<void> is_sent, fails, has_failed;
  std::atomic<bool> is_appending = false, is_full = false;
  volume.clock().before_wall_time = [&] {  // the bytes are buffered, and the write is about to look again
    if (!is_appending.exchange(false)) return;
    fails.set_value();
    has_failed.get_future().wait();
  };
  auto mount = volume.mount(buffered());
  const std::string old(2 * object_bytes, 'o');
  const auto file = stored_file(mount, old);
  for (const auto offset : {std::uint64_t{0}, object_bytes})
    need(write_at(*mount.file_system, file.handle, offset, "o"));
  mount.client->set_hook([&, writes = std::make_shared<std::atomic<unsigned>>(0)](const StepInfo& info) {
    if (info.kind != StepKind::write || !is_full) return Fault{};
    const auto number = ++*writes;
    if (number == 1) is_sent.set_value(), fails.get_future().wait();
    if (number == 2) has_failed.set_value();  // the first one was answered
    return Fault{Fault::Kind::fail, ErrorCode::no_space};
  });
  is_full = true;
  Result<> synced;
  std::thread syncing([&] { synced = mount->fsync(file.handle, true); });
  is_sent.get_future().wait();
  volume.clock().advance(std::chrono::seconds(1));
  is_appending = true;
  CHECK(code_of(write_with(O_APPEND, *mount.file_system, file.handle, 0, "first")) == ErrorCode::no_space);
  syncing.join();
  CHECK(code_of(synced) == ErrorCode::no_space);
  is_full = false;
  CHECK(need(mount->get_attributes(file.ino)).attributes.size_bytes == old.size());
  need(write_with(O_APPEND, *mount.file_system, file.handle, 0, "second"));
  static_cast<void>(mount->fsync(file.handle, false));
  CHECK((read_elsewhere(volume, file.ino) == old + "second"));
}

TEST_CASE("an append that is to be stored at once, and whose size the store refuses, leaves nothing of itself") {
  TestVolume volume;
  const bool is_buffered = GENERATE(true, false);
  auto mount = volume.mount(is_buffered ? buffered() : FileSystemOptions{});
  const auto file = stored_file(mount, "old");
  const int flags = O_APPEND | GENERATE(O_DSYNC, O_SYNC);
  mount.client->set_hook(once_on("store size, times, map", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(code_of(write_with(flags, *mount.file_system, file.handle, 0, "new")) == ErrorCode::no_space);
  CHECK(whole(*mount.file_system, file.handle) == "old");
  need(write_with(flags, *mount.file_system, file.handle, 0, "new"));
  CHECK(read_elsewhere(volume, file.ino) == "oldnew");
}

TEST_CASE("an append that is told an error leaves no zeros that a crash would show") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "old");
  const auto size_step = [runs = std::make_shared<std::atomic<unsigned>>(0)](const StepInfo& info) {
    if (info.step != "store size, times, map") return Fault{};
    // The first run is applied, though its answer is lost; all others find no room.
    return ++*runs == 1 ? Fault{Fault::Kind::lost_answer_applied} : Fault{Fault::Kind::fail, ErrorCode::no_space};
  };
  mount.client->set_hook(size_step);
  CHECK(code_of(write_with(O_APPEND | O_DSYNC, *mount.file_system, file.handle, 0, "new")) == ErrorCode::no_space);
  CHECK(whole(*mount.file_system, file.handle) == "old");
  // Nor does what cleans up after it later.
  const bool is_written_again = GENERATE(false, true);
  if (is_written_again) {
    CHECK(code_of(write_with(O_DIRECT, *mount.file_system, file.handle, 0, "x")) == ErrorCode::no_space);
  }
  mount.client->crash();
  volume.clock().advance(std::chrono::seconds(61));
  CHECK(read_elsewhere(volume, file.ino) == "oldnew");
}

TEST_CASE("an append that is told an error leaves no zeros either where somebody else has stored its size") {
  const auto try_it = [] {
    TestVolume volume;
    auto mount = volume.mount(buffered());
    const auto file = stored_file(mount, "old");
    const auto second = open_again(*mount.file_system, file.ino);
    need(write_at(*mount.file_system, file.handle, 0, "o"));
    // The append's own bytes pass. What is buffered is held: by then the file is longer, and its size not stored.
    mount.client->set_hook([writes = std::make_shared<std::atomic<unsigned>>(0)](const StepInfo& info) {
      return info.kind == StepKind::write && ++*writes == 2 ? Fault{Fault::Kind::hold} : Fault{};
    });
    auto append = begin_write(*mount.file_system, file.handle,
                              {.offset_bytes = 0, .bytes = shared_bytes("new"), .flags = O_APPEND | O_SYNC});
    REQUIRE(mount.client->wait_for_held(1));
    std::vector<std::thread> syncing;
    for (unsigned i = 0; i < 4; ++i) syncing.emplace_back([&] { static_cast<void>(mount->fsync(second, true)); });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // they wait for what is held, too
    mount.client->set_hook([steps = std::make_shared<std::atomic<unsigned>>(0)](const StepInfo& info) {
      const bool fails = info.step == "store size, times, map" && ++*steps != 1;
      return fails ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
    });
    mount.client->release_all();
    const auto appended = append.get();
    for (auto& thread : syncing) thread.join();
    if (!appended) CHECK(whole(*mount.file_system, file.handle) == "old");
    mount.client->crash();
    volume.clock().advance(std::chrono::seconds(61));
    CHECK(read_elsewhere(volume, file.ino) == "oldnew");
    return code_of(appended) == ErrorCode::no_space;
  };
  bool was_first = false;  // one of the others, which is not known before
  for (unsigned i = 0; i < 50 && !was_first; ++i) was_first = try_it();
  CHECK(was_first);
}

TEST_CASE("fsync beside a change of the size that the store refuses covers all that was written before") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "old");
  const auto store = volume.new_client();
  const auto size = [&] { return need(mount->get_attributes(file.ino)).attributes.size_bytes; };
  for (unsigned i = 0; i < 20; ++i) {  // which of the two steps comes first is not known
    need(write_at(*mount.file_system, file.handle, size(), "new"));
    const auto written_bytes = size();
    mount.client->set_hook(holds_writes());
    Result<> synced;
    std::thread syncing([&] { synced = mount->fsync(file.handle, false); });
    REQUIRE(mount.client->wait_for_held(1));
    mount.client->set_hook(once_on("store size, times, map", {Fault::Kind::fail, ErrorCode::no_space}));
    SetAttributes longer;
    longer.size_bytes = written_bytes + 100;
    std::thread growing([&] { static_cast<void>(mount->set_attributes({}, file.ino, longer)); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it waits for that write, too
    mount.client->release_all();
    syncing.join();
    growing.join();
    const auto stored = need(objects::read_inode(objects::reader_of(*store), file.ino));
    if (synced) CHECK(stored.size_bytes >= written_bytes);
  }
}

TEST_CASE("a truncate cuts what is buffered, too") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "0123456789");
  need(write_at(*mount.file_system, file.handle, 2, std::string(2 * object_bytes, 'x')));
  SetAttributes shorter;
  shorter.size_bytes = 4;
  need(mount->set_attributes({}, file.ino, shorter));
  CHECK(whole(*mount.file_system, file.handle) == "01xx");
  shorter.size_bytes = 6;
  need(mount->set_attributes({}, file.ino, shorter));
  close_file(*mount.file_system, file.handle);
  CHECK(read_elsewhere(volume, file.ino) == std::string("01xx\0\0", 6));
}

TEST_CASE("a close stores everything, and gives the lease back") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = create_file(*mount.file_system, "f");
  mount.client->reset_record();
  for (unsigned i = 0; i < 8; ++i) need(write_at(*mount.file_system, file.handle, i * 4, "abcd"));
  close_file(*mount.file_system, file.handle);
  CHECK(mount.client->counts() == StepCounts{.applies = 1, .writes = 1});
  auto other = volume.mount();
  const auto handle = open_again(*other.file_system, file.ino);
  CHECK(other.client->counts().notifies == 0);
  CHECK(whole(*other.file_system, handle).size() == 32);
}

TEST_CASE("a client that opens the file sees what was answered before, and from then on what is answered") {
  TestVolume volume;
  auto writer = volume.mount(buffered());
  auto reader = volume.mount(buffered());
  const auto file = stored_file(writer, "old bytes");
  need(write_at(*writer.file_system, file.handle, 0, "new"));
  const auto handle = open_again(*reader.file_system, file.ino, O_RDONLY);
  CHECK(need(read_at(*reader.file_system, handle, 0, 9)) == "new bytes");
  need(write_at(*writer.file_system, file.handle, 4, "again"));
  CHECK(need(read_at(*reader.file_system, handle, 0, 9)) == "new again");
}

TEST_CASE("who takes the lease from another client writes so that this one reads it at once") {
  TestVolume volume;
  auto first = volume.mount(buffered());
  auto second = volume.mount(buffered());
  const auto file = stored_file(first, "aaaaaaaa");
  const auto handle = open_again(*second.file_system, file.ino);
  second.client->set_hook(holds_writes());
  auto written = begin_write(*second.file_system, handle, 0, "22");
  REQUIRE(second.client->wait_for_held(1));
  CHECK(written.wait_for(std::chrono::seconds(0)) != std::future_status::ready);
  second.client->set_hook(nullptr);
  second.client->release_all();
  need(written.get());
  CHECK(whole(*first.file_system, file.handle) == "22aaaaaa");
  need(write_at(*second.file_system, handle, 4, "22"));
  CHECK(need(read_at(*first.file_system, file.handle, 0, 8)) == "22aa22aa");
}

TEST_CASE("a client that needs the lease gets it with everything stored") {
  TestVolume volume;
  auto first = volume.mount(buffered());
  auto second = volume.mount(buffered());
  const auto file = stored_file(first, "aaaaaaaa");
  const auto handle = open_again(*second.file_system, file.ino);
  need(write_at(*first.file_system, file.handle, 0, "1111"));
  need(write_at(*second.file_system, handle, 2, "2222"));
  CHECK(whole(*first.file_system, file.handle) == "112222aa");
  CHECK(whole(*second.file_system, handle) == "112222aa");
}

TEST_CASE("a name that is replaced never leads to less than the new file had") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  stored_file(mount, "old");
  const auto file = create_file(*mount.file_system, "f.tmp");
  need(write_at(*mount.file_system, file.handle, 0, "new and longer"));
  mount.client->reset_record();
  need(mount->rename(root_ino, "f.tmp", root_ino, "f", RenameMode::replace));
  CHECK(place_of(mount, "write") < place_of(mount, "store size"));
  CHECK(place_of(mount, "store size") < place_of(mount, "rename entries"));
  mount.client->crash();
  volume.clock().advance(std::chrono::seconds(61));
  CHECK(read_elsewhere(volume, file.ino) == "new and longer");
}

TEST_CASE("a write that could not be stored is told once to each handle, and stays readable") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "old bytes");
  const auto second = open_again(*mount.file_system, file.ino);
  need(write_at(*mount.file_system, file.handle, 0, "new"));
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  CHECK(code_of(mount->fsync(file.handle, false)) == ErrorCode::no_space);
  CHECK(whole(*mount.file_system, file.handle) == "new bytes");
  mount.client->set_hook(nullptr);
  CHECK(mount->fsync(file.handle, false));
  CHECK(code_of(mount->fsync(second, false)) == ErrorCode::no_space);
  CHECK(mount->fsync(second, false));
  const auto third = open_again(*mount.file_system, file.ino);
  CHECK(mount->fsync(third, false));
  CHECK(read_elsewhere(volume, file.ino) == "new bytes");
}

TEST_CASE("tries that fail again are no new error to who was told of the first, the loss of the bytes is one") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  auto other = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = stored_file(mount, "old bytes");
  const auto second = open_again(fs, file.ino);
  std::atomic<unsigned> tries = 0;
  const auto no_room = [&tries](const StepInfo& info) {
    if (info.kind != StepKind::write) return Fault{};
    ++tries;
    return Fault{Fault::Kind::fail, ErrorCode::no_space};
  };
  need(write_at(fs, file.handle, 0, "new"));
  mount.client->set_hook(no_room);
  CHECK(code_of(fs.fsync(file.handle, false)) == ErrorCode::no_space);
  for (unsigned i = 0; i < 3; ++i) {
    const unsigned before = tries;
    volume.clock().advance(std::chrono::seconds(6));
    for (unsigned j = 0; j < 10000 && tries == before; ++j) {
      fs.tick();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    REQUIRE(tries > before);
  }
  CHECK(code_of(fs.fsync(second, false)) == ErrorCode::no_space);  // and no try is under way any more
  mount.client->set_hook(nullptr);
  CHECK(fs.fsync(file.handle, false));
  CHECK(fs.fsync(second, false));

  need(write_with(O_DIRECT, fs, file.handle, 0, "has room"));
  need(write_at(fs, file.handle, 0, "new"));
  mount.client->set_hook(no_room);
  CHECK(code_of(fs.fsync(file.handle, false)) == ErrorCode::no_space);
  need(write_at(*other.file_system, open_again(*other.file_system, file.ino), 8, "!"));
  mount.client->set_hook(nullptr);
  for (const auto handle : {file.handle, second}) {
    CHECK(code_of(fs.fsync(handle, false)) == ErrorCode::no_space);
    CHECK(fs.fsync(handle, false));
  }
  CHECK(whole(fs, file.handle) == "has room!");
}

TEST_CASE("once a write that waited found no room, the next ones wait, until one of them finds some") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto full = stored_file(mount, "old bytes");
  const auto other = create_file(*mount.file_system, "other");
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  CHECK(code_of(write_with(O_DIRECT, *mount.file_system, full.handle, 0, "new")) == ErrorCode::no_space);
  CHECK(code_of(write_at(*mount.file_system, other.handle, 0, "1")) == ErrorCode::no_space);
  mount.client->set_hook(nullptr);
  need(write_at(*mount.file_system, other.handle, 0, "2"));
  mount.client->reset_record();
  need(write_at(*mount.file_system, other.handle, 1, "3"));
  CHECK(mount.client->counts().writes == 0);
}

TEST_CASE("the log has one line when writes find no room any more, and one when a write has found some again") {
  const auto code = GENERATE(ErrorCode::no_space, ErrorCode::quota_exceeded);
  const std::string why = code == ErrorCode::no_space ? "no space left" : "quota reached";
  TestVolume volume;
  auto mount = volume.mount(buffered());
  auto& fs = *mount.file_system;
  const auto direct = stored_file(mount, "old bytes");
  const auto behind = create_file(fs, "behind");
  need(write_at(fs, behind.handle, 0, "new"));
  const LogLines lines;
  mount.client->set_hook(fails_writes(code));
  for (int i = 0; i < 3; ++i) {
    CHECK(code_of(write_with(O_DIRECT, fs, direct.handle, 0, "new")) == code);
    CHECK(code_of(fs.fsync(behind.handle, false)) == code);
  }
  REQUIRE(lines.with("the store has").size() == 1);
  CHECK(lines.with("the store has").front().starts_with("the store has no room for writes: " + why + ": "));
  mount.client->set_hook(nullptr);
  SECTION("one that was refused before") { need(fs.fsync(behind.handle, false)); }
  SECTION("one that waits") { need(write_with(O_DIRECT, fs, direct.handle, 9, "longer")); }
  need(write_with(O_DIRECT, fs, direct.handle, 15, "longer still"));
  REQUIRE(lines.with("the store has").size() == 2);
  CHECK(lines.with("the store has").back() == "the store has room for writes again");
  mount.client->set_hook(fails_writes(code));
  CHECK(code_of(write_with(O_DIRECT, fs, direct.handle, 0, "new")) == code);
  CHECK(lines.with("the store has").size() == 3);
}

TEST_CASE("a write that needs no room does not count as one that has found some") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered());
  auto& fs = *mount.file_system;
  const auto image = stored_file(mount, std::string(2 * object_bytes, 'o'));
  const auto refused = create_file(fs, "refused"), next = create_file(fs, "next");
  mount.client->set_hook([object = format::data_object(image.ino, ObjectIndex{0})](const StepInfo& info) {
    const bool needs_room = info.kind == StepKind::write && info.object != object;
    return needs_room ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  need(write_at(fs, refused.handle, 0, "bytes"));
  CHECK(code_of(fs.fsync(refused.handle, false)) == ErrorCode::no_space);
  need(write_with(O_DIRECT, fs, image.handle, 100, "guest"));
  CHECK(code_of(write_at(fs, next.handle, 0, "bytes")) == ErrorCode::no_space);
  mount.client->set_hook(nullptr);
  SECTION("an object of which nothing was there is room") {
    need(fs.fallocate({}, image.handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, object_bytes));
    need(write_with(O_DIRECT, fs, image.handle, 100, "guest"));
  }
  SECTION("so is an object that could not exist") {
    SetAttributes longer;
    longer.size_bytes = 9 * object_bytes;
    need(fs.set_attributes({}, image.ino, longer));
    need(write_with(O_DIRECT, fs, image.handle, 7 * object_bytes, "guest"));
  }
  SECTION("so is what makes a file longer") {
    need(write_with(O_DIRECT, fs, image.handle, 2 * object_bytes - 1, "guest"));
  }
  mount.client->reset_record();
  need(write_at(fs, next.handle, 0, "bytes"));
  CHECK(mount.client->counts().writes == 0);
}

TEST_CASE("a write whose object finds no room in the map makes the next ones wait") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered());
  auto& fs = *mount.file_system;
  const auto file = stored_file(mount, "old bytes");
  mount.client->set_hook([](const StepInfo& info) {
    return info.kind == StepKind::apply ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  CHECK(code_of(write_at(fs, file.handle, 5 * object_bytes, "refused")) == ErrorCode::no_space);
  mount.client->set_hook(nullptr);
  mount.client->reset_record();
  need(write_at(fs, file.handle, 0, "waits"));
  CHECK(mount.client->counts().writes == 1);
}

TEST_CASE("an error of which nobody asked is told by the close") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "old bytes");
  need(write_at(*mount.file_system, file.handle, 0, "new"));
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  CHECK(code_of(mount->flush(file.handle)) == ErrorCode::no_space);
  mount->release(file.handle);
  mount.client->set_hook(nullptr);
  CHECK(read_elsewhere(volume, file.ino) == "old bytes");
}

TEST_CASE("a descriptor that a child closes takes neither the bytes that could not be stored nor their error") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "old bytes");
  need(write_at(*mount.file_system, file.handle, 0, "new"));
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  CHECK(code_of(mount->flush(file.handle)) == ErrorCode::no_space);
  mount.client->set_hook(nullptr);
  CHECK(code_of(mount->fsync(file.handle, false)) == ErrorCode::no_space);
  CHECK(whole(*mount.file_system, file.handle) == "new bytes");
  need(mount->fsync(file.handle, false));
  CHECK(read_elsewhere(volume, file.ino) == "new bytes");
}

TEST_CASE("a write that fails leaves what is buffered below it") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "old bytes");
  need(write_at(*mount.file_system, file.handle, 0, "new"));
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  CHECK(code_of(mount->fsync(file.handle, false)) == ErrorCode::no_space);
  CHECK(code_of(write_at(*mount.file_system, file.handle, 1, "x")) == ErrorCode::no_space);
  CHECK(whole(*mount.file_system, file.handle) == "new bytes");
}

TEST_CASE("who waits for all to be stored is told so if a part is lost meanwhile") {
  TestVolume volume;
  const auto store = volume.new_client();
  const auto room = std::make_shared<DirtyRoom>(1 << 20, volume.clock());
  const auto buffer = std::make_shared<WriteBuffer>(Ino{7}, *store, object_bytes, room);
  const ByteRange second{object_bytes, object_bytes + 1};
  for (const std::uint64_t offset : {std::uint64_t{0}, second.begin}) {
    REQUIRE(room->take_now(1));
    buffer->put(offset, std::string(1, 'x'));
  }
  store->set_hook([](const StepInfo& info) {
    return info.object == "Data.7.0" ? Fault{Fault::Kind::hold} : Fault{Fault::Kind::fail, ErrorCode::no_space};
  });
  auto waits = std::async(std::launch::async, [&] { return buffer->write_out(WriteBuffer::everything); });
  REQUIRE(store->wait_for_held(1));
  auto loses = std::async(std::launch::async, [&] { return buffer->lose({ErrorCode::no_space, "no space"}); });
  while (buffer->has_any_of(second)) std::this_thread::yield();
  store->set_hook(nullptr);
  store->release_all();
  CHECK(code_of(waits.get()) == ErrorCode::no_space);
  CHECK(loses.get() == 1);
  CHECK(room->used_bytes() == 0);
  CHECK(buffer->write_out(WriteBuffer::everything).has_value());
}

TEST_CASE("pieces that could not be stored take no room, nor while they are tried again") {
  TestVolume volume;
  const auto store = volume.new_client();
  const auto room = std::make_shared<DirtyRoom>(1 << 20, volume.clock());
  const auto buffer = std::make_shared<WriteBuffer>(Ino{7}, *store, object_bytes, room);
  const auto put = [&](std::uint64_t offset) {
    REQUIRE(room->take_now(1));
    buffer->put(offset, std::string(1, 'x'));
  };
  for (const std::uint64_t offset : {0U, 10U, 20U}) put(offset);
  put(object_bytes);
  CHECK(room->used_bytes() == 4 + 3 * 512);
  store->set_hook([](const StepInfo& info) {
    return info.object == "Data.7.0" ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  CHECK(code_of(buffer->write_out(WriteBuffer::everything)) == ErrorCode::no_space);
  CHECK(room->used_bytes() == 0);
  CHECK(buffer->bytes_without_room() == 3 + 3 * 512);
  store->set_hook([](const StepInfo&) { return Fault{Fault::Kind::hold}; });
  auto again = std::async(std::launch::async, [&] { return buffer->write_out(WriteBuffer::everything); });
  REQUIRE(store->wait_for_held(1));
  CHECK(room->used_bytes() == 0);
  CHECK(buffer->bytes_without_room() == 3 + 3 * 512);
  store->set_hook(nullptr);
  store->release_all();
  CHECK(again.get().has_value());
  CHECK(room->used_bytes() == 0);
  for (const std::uint64_t offset : {0U, 10U, 20U}) put(offset);
  CHECK(buffer->drop({5, 15}) == 1);
  CHECK(room->used_bytes() == 2 + 512);
  CHECK(buffer->lose({ErrorCode::no_space, "no space"}) == 2);
  CHECK(room->used_bytes() == 0);
}

TEST_CASE("what has failed counts as failing until it is stored or dropped, also while it is tried again") {
  TestVolume volume;
  const auto store = volume.new_client();
  const auto room = std::make_shared<DirtyRoom>(1 << 20, volume.clock());
  const auto buffer = std::make_shared<WriteBuffer>(Ino{7}, *store, object_bytes, room);
  for (const std::uint64_t offset : {std::uint64_t{0}, object_bytes}) {
    REQUIRE(room->take_now(1));
    buffer->put(offset, "x");
  }
  store->set_hook(fails_writes(ErrorCode::io));
  CHECK_FALSE(buffer->write_out(WriteBuffer::everything));
  CHECK(buffer->is_failing());
  store->set_hook([](const StepInfo& info) { return info.object == "Data.7.1" ? Fault{Fault::Kind::hold} : Fault{}; });
  auto again = std::async(std::launch::async, [&] { return buffer->write_out(WriteBuffer::everything); });
  REQUIRE(store->wait_for_held(1));
  CHECK_FALSE(buffer->has_any_of({0, object_bytes}));
  CHECK(buffer->is_failing());
  store->set_hook(nullptr);
  store->release_all();
  CHECK(again.get().has_value());
  CHECK_FALSE(buffer->is_failing());
}

TEST_CASE("an open on another client is not kept waiting by what cannot be stored") {
  TestVolume volume;
  auto writer = volume.mount(buffered());
  auto reader = volume.mount();
  const auto file = stored_file(writer, "old bytes");
  need(write_at(*writer.file_system, file.handle, 0, "new and longer"));
  // An open that were kept waiting would come to an end, and see what was stored then.
  std::atomic<unsigned> tries = 0;
  writer.client->set_hook([&tries](const StepInfo& info) {
    const bool fails = info.kind == StepKind::write && ++tries < 100;
    return fails ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  const auto handle = open_again(*reader.file_system, file.ino, O_RDONLY);
  CHECK(whole(*reader.file_system, handle) == "old bytes");
  writer.client->set_hook(nullptr);
  CHECK(code_of(writer->fsync(file.handle, false)) == ErrorCode::no_space);
  need(writer->fsync(file.handle, false));
  CHECK(whole(*reader.file_system, handle) == "new and longer");
}

TEST_CASE("while some objects of a file cannot be written, its writes wait for the store, though others can") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, std::string(4 * object_bytes, 'o'));
  mount.client->set_hook([](const StepInfo& info) {
    const bool fails = info.kind == StepKind::write && info.object.ends_with("1");
    return fails ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  const std::string whole_unit(object_bytes, 'n');
  CHECK(code_of(write_at(*mount.file_system, file.handle, object_bytes, whole_unit)) == ErrorCode::io);
  need(write_at(*mount.file_system, file.handle, 0, whole_unit));
  mount.client->reset_record();
  need(write_at(*mount.file_system, file.handle, 2 * object_bytes, "waits"));
  CHECK(mount.client->counts() == StepCounts{.writes = 1});
  CHECK(code_of(write_at(*mount.file_system, file.handle, object_bytes + 5, "told")) == ErrorCode::io);
}

TEST_CASE("bytes that are written over while a grown size is being stored go to the store by themselves, too") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  auto other = volume.mount();
  const auto file = stored_file(mount, "old");
  need(write_at(*mount.file_system, file.handle, 3, " and longer"));
  mount.client->set_hook(before("write", [&] { need(write_at(*mount.file_system, file.handle, 0, "new")); }));
  CHECK(need(other->get_attributes(file.ino)).attributes.size_bytes == 14);
  CHECK(mount.client->counts() == StepCounts{.applies = 1, .writes = 1});
  for (int i = 0; i < 10000 && mount.client->counts().writes < 2; ++i) {
    volume.clock().advance(std::chrono::seconds(6));
    mount->tick();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(mount.client->counts().writes == 2);
}

/// As if all waiting were in vain.
class ImpatientClock final : public FakeClock {
 public:
  bool wait_for(std::condition_variable&, std::unique_lock<std::mutex>&, std::chrono::nanoseconds,
                const std::function<bool()>& done) override {
    if (!done()) ++in_vain;
    return done();
  }
  unsigned in_vain = 0;
};

TEST_CASE("objects that do not answer, and fill the limit, leave other files alone") {
  TestVolume volume(small_objects());
  ImpatientClock clock;
  Mount mount{volume.new_client(), nullptr};
  mount.file_system = need(mount_volume(mount.client, clock, buffered(16 << 10)));
  const auto hangs = stored_file(mount, std::string(object_bytes, 'o'));
  const auto file = create_file(*mount.file_system, "g");
  need(write_at(*mount.file_system, file.handle, 0, "old"));
  need(mount->fsync(file.handle, false));
  mount.client->set_hook([object = format::data_object(hangs.ino, ObjectIndex{0})](const StepInfo& info) {
    return info.object == object ? Fault{Fault::Kind::hold} : Fault{};
  });
  for (unsigned i = 0; i < 4; ++i) {
    need(write_at(*mount.file_system, hangs.handle, i * 4096, std::string(4096, 'n')));
  }
  need(write_at(*mount.file_system, file.handle, 0, "new bytes"));
  CHECK(whole(*mount.file_system, file.handle) == "new bytes");
  need(mount->fsync(file.handle, false));
  for (unsigned i = 0; i < 10; ++i) need(write_with(O_APPEND, *mount.file_system, file.handle, 0, "+"));
  CHECK(clock.in_vain == 1);
  mount.client->set_hook(nullptr);
  mount.client->release_all();
  need(mount->fsync(hangs.handle, false));
  CHECK(whole(*mount.file_system, hangs.handle).substr(0, 16384) == std::string(16384, 'n'));
}

TEST_CASE("a close that cannot store what was written leaves the file as long as what is stored") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "old bytes");
  need(write_at(*mount.file_system, file.handle, 2 * object_bytes, "far away"));
  need(write_at(*mount.file_system, file.handle, 4, "here"));
  mount.client->set_hook([](const StepInfo& info) {
    const bool fails = info.kind == StepKind::write && info.object.ends_with("0");
    return fails ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  CHECK(code_of(mount->flush(file.handle)) == ErrorCode::no_space);
  mount->release(file.handle);
  mount.client->set_hook(nullptr);
  CHECK(read_elsewhere(volume, file.ino) == "old bytes");
  const auto again = open_again(*mount.file_system, file.ino);
  SetAttributes longer;
  longer.size_bytes = 2 * object_bytes + 8;
  need(mount->set_attributes({}, file.ino, longer));
  CHECK(need(read_at(*mount.file_system, again, 2 * object_bytes, 8)) == std::string(8, '\0'));
}

TEST_CASE("what is stored while it is about to be lost stays") {
  TestVolume volume;
  auto maker = volume.mount();
  const auto ino = stored_file(maker, "old").ino;
  need(maker->unmount());
  const auto store = volume.new_client();
  const auto instance = need(Instance::start(store, volume.clock(), {}));
  LeaseHolders holders(*instance);
  KernelView kernel;
  Exchangeable<FileNode::StoredHandler> nobody;
  const auto room = std::make_shared<DirtyRoom>(1 << 20, volume.clock());
  FileNode node(ino, *instance, holders, kernel, room, nobody);
  {
    const Lock one_step(node.step_mutex);
    need(node.ensure());
    REQUIRE(room->take_now(8));
    node.buffer->put(0, std::string("new data"));
    const Lock lock(node.mutex);
    node.note_bytes_up_to(8);
  }

  // Between the try that fails and the loss, one by fsync is sent that succeeds.
  std::promise<void> try_fails, is_kept_waiting, is_tried_again;
  std::thread keeping_waiting([&] {
    try_fails.get_future().wait();
    const Lock lock(node.mutex);
    is_kept_waiting.set_value();
    is_tried_again.get_future().wait();
  });
  store->set_hook([&](const StepInfo& info) {
    if (info.kind != StepKind::write) return Fault{};
    try_fails.set_value();
    is_kept_waiting.get_future().wait();
    return Fault{Fault::Kind::fail, ErrorCode::no_space};
  });
  std::future<Result<>> written_out, synced;
  std::future<void> answering;
  {
    const BeforeBlocking try_again([&] {
      store->set_hook(holds_writes());
      written_out = std::async(std::launch::async, [&] { return node.write_out(); });
      CHECK(store->wait_for_held(1));
      store->set_hook(nullptr);
      synced = std::async(std::launch::async, [&] { return node.store_dirty(true); });
      is_tried_again.set_value();
      answering = std::async(std::launch::async, [&] {
        for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // the loss waits for it
        store->release_all();
      });
    });
    const AloneInGate alone(node.gate);
    need(node.release_at_any_price());
  }
  keeping_waiting.join();
  REQUIRE(answering.valid());
  answering.get();
  need(written_out.get());
  need(synced.get());
  CHECK(instance->losses().first());
  const auto stored = need(objects::read_inode(objects::reader_of(*store), ino));
  CHECK(stored.size_bytes == 8);
  CHECK_FALSE(stored.lease);
  CHECK(read_elsewhere(volume, ino) == "new data");
  need(instance->end());
}

TEST_CASE("after one that could not be stored, writes wait for the store until one has succeeded") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, std::string(100, 'o'));
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  need(write_at(*mount.file_system, file.handle, 0, "lost"));
  CHECK(code_of(mount->fsync(file.handle, true)) == ErrorCode::no_space);
  CHECK(code_of(write_at(*mount.file_system, file.handle, 50, "told")) == ErrorCode::no_space);
  mount.client->set_hook(nullptr);
  mount.client->reset_record();
  need(write_at(*mount.file_system, file.handle, 2, "through"));
  CHECK(mount.client->counts().writes >= 1);
  mount.client->reset_record();
  need(write_at(*mount.file_system, file.handle, 20, "buffered"));
  CHECK(mount.client->counts() == StepCounts{});
  close_file(*mount.file_system, file.handle);
  const auto read = read_elsewhere(volume, file.ino);
  CHECK(read.substr(0, 9) == "lothrough");
  CHECK(read.substr(20, 8) == "buffered");
}

TEST_CASE("a truncate cuts what could not be stored, and a full store does not keep it from that") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "0123456789");
  need(write_at(*mount.file_system, file.handle, 8, "abcd"));
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  SetAttributes resize;
  resize.size_bytes = 9;
  need(mount->set_attributes({}, file.ino, resize));
  mount.client->set_hook(nullptr);
  resize.size_bytes = 12;
  need(mount->set_attributes({}, file.ino, resize));
  CHECK(code_of(mount->fsync(file.handle, false)) == ErrorCode::no_space);
  need(mount->fsync(file.handle, false));
  CHECK(read_elsewhere(volume, file.ino) == std::string("01234567a\0\0\0", 12));
}

TEST_CASE("a size that is set past bytes which could not be stored is not stored before them") {
  for (const bool by_truncate : {true, false}) {
    for (const bool is_stored_later : {true, false}) {
      INFO(by_truncate << is_stored_later);
      TestVolume volume(small_objects());
      auto dead = volume.mount(buffered());
      const auto file = stored_file(dead, "old");
      need(write_at(*dead.file_system, file.handle, 3, "new"));
      dead.client->set_hook(fails_writes(ErrorCode::no_space));
      SetAttributes resize;
      resize.size_bytes = 100;
      if (by_truncate) need(dead->set_attributes({}, file.ino, resize));
      if (!by_truncate) need(dead->fallocate({}, file.handle, 0, 50, 50));
      CHECK(need(dead->get_attributes(file.ino)).attributes.size_bytes == 100);
      if (is_stored_later) {
        dead.client->set_hook(nullptr);
        CHECK_FALSE(dead->fsync(file.handle, false));
        need(dead->fsync(file.handle, false));
      }
      dead.client->crash();
      volume.clock().advance(std::chrono::seconds(61));
      CHECK(read_elsewhere(volume, file.ino) == (is_stored_later ? "oldnew" + std::string(94, '\0') : "old"));
    }
  }
}

TEST_CASE("pages past the end that are written back do not count as a write that has found room") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered());
  auto& fs = *mount.file_system;
  const auto file = stored_file(mount, "old"), empty = create_file(fs, "empty");
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  need(write_at(fs, file.handle, 0, "new"));
  CHECK(code_of(fs.fsync(file.handle, false)) == ErrorCode::no_space);
  CHECK(code_of(write_at(fs, empty.handle, 0, "refused")) == ErrorCode::no_space);
  WriteRequest pages{.offset_bytes = 4096, .bytes = shared_bytes("page"), .writes_back_pages = true};
  CHECK(need(begin_write(fs, empty.handle, std::move(pages)).get()) == 4);
  CHECK(code_of(write_at(fs, empty.handle, 0, "refused")) == ErrorCode::no_space);
}

TEST_CASE("a direct write whose own bytes are stored is told nothing of others that cannot be") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered());
  auto& fs = *mount.file_system;
  const auto file = stored_file(mount, std::string(2 * object_bytes, 'o'));
  need(write_at(fs, file.handle, 0, "refused"));
  need(write_at(fs, file.handle, object_bytes, "slow"));
  mount.client->set_hook([refused = format::data_object(file.ino, ObjectIndex{0})](const StepInfo& info) {
    if (info.kind != StepKind::write) return Fault{};
    return info.object == refused ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{Fault::Kind::hold};
  });
  std::optional<ErrorCode> told;
  std::thread writer([&] { told = code_of(write_with(O_DIRECT, fs, file.handle, object_bytes, "fast")); });
  const bool is_slow = mount.client->wait_for_held(1);
  CHECK(code_of(write_with(O_DIRECT, fs, file.handle, 0, "as well")) == ErrorCode::no_space);
  mount.client->set_hook(nullptr);
  mount.client->release_all();
  writer.join();
  CHECK(is_slow);
  CHECK(told == std::nullopt);
  CHECK_FALSE(fs.fsync(file.handle, false));
  need(fs.fsync(file.handle, false));
  CHECK(read_elsewhere(volume, file.ino).substr(object_bytes, 4) == "fast");
}

TEST_CASE("a write that waited for room in vain, as the store has none, leaves nothing behind") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered(16 << 10));
  const auto file = stored_file(mount, "old");
  const std::string first(11 << 10, 'a');
  need(write_at(*mount.file_system, file.handle, 0, first));
  mount.client->set_hook(fails_writes(ErrorCode::no_space));
  const std::string second(6 << 10, 'b');
  CHECK(code_of(write_with(O_APPEND, *mount.file_system, file.handle, 0, second)) == ErrorCode::no_space);
  CHECK(need(mount->get_attributes(file.ino)).attributes.size_bytes == first.size());
  mount.client->set_hook(nullptr);
  CHECK_FALSE(mount->fsync(file.handle, false));
  need(mount->fsync(file.handle, false));
  CHECK(read_elsewhere(volume, file.ino) == first);
}

TEST_CASE("what could not be stored lies below what was written since") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "oooooooo");
  need(write_at(*mount.file_system, file.handle, 0, "111111"));
  mount.client->set_hook([&, done = std::make_shared<bool>(false)](const StepInfo& info) {
    if (info.kind != StepKind::write || std::exchange(*done, true)) return Fault{};
    need(write_at(*mount.file_system, file.handle, 2, "22"));
    return Fault{Fault::Kind::fail, ErrorCode::io};
  });
  CHECK_FALSE(mount->fsync(file.handle, true));
  mount.client->set_hook(nullptr);
  CHECK(whole(*mount.file_system, file.handle) == "112211oo");
  need(mount->fsync(file.handle, true));
  CHECK(read_elsewhere(volume, file.ino) == "112211oo");
}

namespace {
/// On a slow machine some have found no room for a second: they went to the store by themselves, behind what is held, and
/// are held in their turn.
void release_until_answered(ScriptedClient& client, std::vector<std::future<Result<std::size_t>>>& answers) {
  for (auto& one : answers) {
    while (one.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) client.release_all();
  }
}
}  // namespace

TEST_CASE("no more than the limit is kept: later writes wait for the store, and nothing is lost") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered(16 << 10));
  const auto file = stored_file(mount, std::string(2 * object_bytes, 'o'));
  mount.client->set_hook(holds_writes());
  std::vector<std::future<Result<std::size_t>>> answers;
  for (unsigned i = 0; i < 16; ++i) {
    const std::string page(4096, static_cast<char>('a' + i));
    answers.push_back(begin_write(*mount.file_system, file.handle, i * 4096, page));
  }
  const auto answered = std::ranges::count_if(
      answers, [](const auto& one) { return one.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  CHECK(answered <= 4);
  REQUIRE(mount.client->wait_for_held(1));
  mount.client->set_hook(nullptr);
  release_until_answered(*mount.client, answers);
  for (auto& one : answers) CHECK(need(one.get()) == 4096);
  for (unsigned i = 0; i < 16; ++i) {
    CHECK(need(read_at(*mount.file_system, file.handle, i * 4096, 1)) == std::string(1, static_cast<char>('a' + i)));
  }
  close_file(*mount.file_system, file.handle);
  CHECK(read_elsewhere(volume, file.ino).substr(15 * 4096, 4096) == std::string(4096, 'p'));
}

TEST_CASE("single bytes all over a file count by what it takes to remember them, until they are stored") {
  TestVolume volume;
  auto mount = volume.mount(buffered(64 << 10));
  std::string expected(4096, 'o');
  const auto file = stored_file(mount, expected);
  mount.client->set_hook(holds_writes());
  std::vector<std::future<Result<std::size_t>>> answers;
  for (unsigned at = 0; at < 4096; at += 8) {
    answers.push_back(begin_write(*mount.file_system, file.handle, at, "x"));
    expected[at] = 'x';
  }
  const auto answered = std::ranges::count_if(
      answers, [](const auto& one) { return one.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  CHECK(answered >= 64);
  CHECK(answered <= (64 << 10) / 512 + 1);  // the first is free
  REQUIRE(mount.client->wait_for_held(1));
  mount.client->set_hook(nullptr);
  release_until_answered(*mount.client, answers);
  for (auto& one : answers) CHECK(need(one.get()) == 1);
  need(mount->fsync(file.handle, true));
  mount.client->reset_record();
  for (unsigned at = 0; at < 64 * 8; at += 8) {
    need(write_at(*mount.file_system, file.handle, at, "y"));
    expected[at] = 'y';
  }
  CHECK(mount.client->counts() == StepCounts{});
  CHECK(whole(*mount.file_system, file.handle) == expected);
  close_file(*mount.file_system, file.handle);
  CHECK(read_elsewhere(volume, file.ino) == expected);
}

TEST_CASE("files that share the limit make room for each other") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(buffered(16 << 10));
  std::vector<std::thread> writers;
  std::vector<OpenFile> files;
  for (unsigned i = 0; i < 4; ++i) files.push_back(create_file(*mount.file_system, "f" + std::to_string(i)));
  for (const auto& file : files) {
    writers.emplace_back([&mount, file] {
      for (unsigned i = 0; i < 50; ++i) {
        need(write_at(*mount.file_system, file.handle, i * 1000, std::string(1000, static_cast<char>('a' + i % 26))));
      }
    });
  }
  for (auto& writer : writers) writer.join();
  for (const auto& file : files) {
    const auto read = whole(*mount.file_system, file.handle);
    REQUIRE(read.size() == 50000);
    for (unsigned i = 0; i < 50; ++i) CHECK(read.at(i * 1000 + 999) == static_cast<char>('a' + i % 26));
  }
}

TEST_CASE("a client that was fenced says so at the next sync, and stores nothing more") {
  TestVolume volume({}, {.lazy_fences = false});
  auto mount = volume.mount(buffered());
  auto other = volume.mount();
  const auto file = stored_file(mount, "stored");
  need(write_at(*mount.file_system, file.handle, 0, "behind"));
  need(other.client->fence(mount.client->identity()));
  CHECK_FALSE(mount->fsync(file.handle, false));
  CHECK_FALSE(mount->flush(file.handle));
  mount->release(file.handle);
  volume.clock().advance(std::chrono::seconds(61));
  CHECK(read_elsewhere(volume, file.ino) == "stored");
}

TEST_CASE("a client that was fenced tells it in one line, however many files it cannot store any more") {
  TestVolume volume({}, {.lazy_fences = false});
  auto mount = volume.mount(buffered());
  auto other = volume.mount();
  const std::vector files{create_file(*mount.file_system, "a"), create_file(*mount.file_system, "b"),
                          create_file(*mount.file_system, "c")};
  for (const auto& file : files) need(write_at(*mount.file_system, file.handle, 0, "behind"));
  const test::LogLines lines;
  need(other.client->fence(mount.client->identity()));
  for (int tries = 0; tries < 2; ++tries) {
    for (const auto& file : files) CHECK_FALSE(mount->fsync(file.handle, false));
  }
  for (const auto& file : files) mount->release(file.handle);
  mount.file_system.reset();
  const auto told = lines.all();
  CAPTURE(told);
  REQUIRE(told.size() == 1);
  CHECK(told.front().find(" was fenced: ") != std::string::npos);
}

TEST_CASE("a file whose lease is another client's, though nothing was fenced, is named when it cannot be stored") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "stored");
  need(write_at(*mount.file_system, file.handle, 0, "new and longer"));
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    objects.metadata()[format::inode_object(file.ino)].xattrs.erase(format::xattr::lease);
  });
  const test::LogLines lines;
  CHECK(error_of(mount->fsync(file.handle, false)) == ErrorCode::fenced);
  CHECK_FALSE(mount->fenced());
  CHECK(lines.with(format::inode_object(file.ino) + ": the lease was taken over by another client").size() == 1);
}

TEST_CASE("unmounting stores what is buffered") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  const auto file = stored_file(mount, "old");
  need(write_at(*mount.file_system, file.handle, 0, "new and longer"));
  need(mount->unmount());
  mount.file_system.reset();
  CHECK(read_elsewhere(volume, file.ino) == "new and longer");
}

TEST_CASE("a mount ends though the store does not say how much space there is") {
  TestVolume volume;
  auto mount = volume.mount(buffered());
  volume.cluster().set_away([](const std::string& object) { return object == ScriptedCluster::all_objects; });
  volume.clock().advance(std::chrono::seconds(5));
  mount->tick();
  volume.clock().waits_end_at_once = true;
  const std::weak_ptr<ScriptedClient> store = std::exchange(mount.client, nullptr);
  auto ended = std::async(std::launch::async, [&] {
    need(mount->unmount());
    mount.file_system.reset();
  });
  CHECK(ended.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  CHECK_FALSE(store.expired());  // who asks still has it
  volume.cluster().set_away(nullptr);
  ended.get();
}
