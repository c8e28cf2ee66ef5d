// SPDX-License-Identifier: LGPL-2.1-or-later
// The interleavings that the rules of the write lease are there for (docs/DATA.md), one test for each.
#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "support/catch.h"
#include "support/file_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

SetAttributes new_size(std::uint64_t size_bytes) {
  SetAttributes changes;
  changes.size_bytes = size_bytes;
  return changes;
}

/// "0000" there, and past its end what a write that failed may have left, which could not be cut: the next write does that
/// first.
OpenFile file_with_dirty_tail(Mount& mount, std::uint64_t offset = 0) {
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, offset, "0000"));
  mount.client->set_hook([](const StepInfo& info) {
    const bool fails = info.kind == StepKind::write || info.kind == StepKind::truncate;
    return fails ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  CHECK_FALSE(write_at(*mount.file_system, file.handle, offset + 4, "past the end"));
  mount.client->set_hook(nullptr);
  return file;
}

}  // namespace

TEST_CASE("who takes a lease that came and went since the look at it looks again") {
  TestVolume volume(small_objects());
  auto slow = volume.mount();
  auto quick = volume.mount();
  const auto file = create_file(*slow.file_system, "f");
  close_file(*slow.file_system, file.handle);
  const auto by_slow = open_again(*slow.file_system, file.ino);
  const auto by_quick = open_again(*quick.file_system, file.ino);
  slow.client->set_hook(before("take lease", [&] {
    need(write_at(*quick.file_system, by_quick, object_bytes, "grown"));
    close_file(*quick.file_system, by_quick);
  }));
  need(write_at(*slow.file_system, by_slow, 0, "slow"));
  close_file(*slow.file_system, by_slow);
  CHECK(need(quick->get_attributes(file.ino)).attributes.size_bytes == object_bytes + 5);
}

TEST_CASE("of two who take over a dead holder's lease one gets it, and asks the other") {
  TestVolume volume(small_objects());
  auto dead = volume.mount();
  auto first = volume.mount();
  auto second = volume.mount();
  const auto file = create_file(*dead.file_system, "f");
  need(write_at(*dead.file_system, file.handle, 0, "dead"));
  need(dead->fsync(file.handle, false));
  dead.client->crash();
  // By the write, or by the clean-up that the open has begun.
  first.client->set_hook(before("take over lease", [&] {
    const auto by_second = open_again(*second.file_system, file.ino);
    need(write_at(*second.file_system, by_second, 4, " and gone"));
  }));
  const auto by_first = open_again(*first.file_system, file.ino);
  need(write_at(*first.file_system, by_first, 0, "DEAD"));
  CHECK(need(read_at(*first.file_system, by_first, 0, 100)) == "DEAD and gone");
  CHECK(need(second->get_attributes(file.ino)).attributes.size_bytes == 13);
}

TEST_CASE("a release that the store runs again takes no lease away from the next holder") {
  TestVolume volume(small_objects());
  auto first = volume.mount();
  auto second = volume.mount();
  auto third = volume.mount();
  const auto file = create_file(*first.file_system, "f");
  need(write_at(*first.file_system, file.handle, 0, "first"));
  const auto by_second = open_again(*second.file_system, file.ino);
  const auto by_third = open_again(*third.file_system, file.ino);
  first.client->set_hook(once_on("release lease", {Fault::Kind::run_again_later, ErrorCode::io}));
  std::thread closing([&] { close_file(*first.file_system, file.handle); });
  CHECK(first.client->wait_for_held(1));
  need(write_at(*second.file_system, by_second, 5, " second"));
  first.client->release_all();
  closing.join();
  // Whoever writes now has to ask the second: else it would not know how long the file is.
  need(write_at(*third.file_system, by_third, 0, "THIRD"));
  CHECK(need(read_at(*third.file_system, by_third, 0, 100)) == "THIRD second");
}

TEST_CASE("a holder that was evicted and does not know is refused a truncate to the size that the file has") {
  TestVolume volume(small_objects());
  auto evicted = volume.mount();
  auto heir = volume.mount();
  const auto file = create_file(*evicted.file_system, "f");
  need(write_at(*evicted.file_system, file.handle, 0, "old"));
  evicted.client->set_deaf(true);
  const auto by_heir = open_again(*heir.file_system, file.ino);
  need(write_at(*heir.file_system, by_heir, 0, "longer"));
  CHECK_FALSE(evicted->set_attributes({}, file.ino, new_size(3)));
  CHECK(need(read_at(*heir.file_system, by_heir, 0, 100)) == "longer");
}

TEST_CASE("a read that misses bytes which a truncate is just taking starts over, and does not make zeros of them") {
  TestVolume volume(small_objects());
  auto writer = volume.mount();
  auto reader = volume.mount();
  const auto file = create_file(*writer.file_system, "f");
  need(write_at(*writer.file_system, file.handle, 0, std::string(100, 'a')));
  close_file(*writer.file_system, file.handle);
  const auto by_reader = open_again(*reader.file_system, file.ino, O_RDONLY);
  CHECK(need(read_at(*reader.file_system, by_reader, 0, 100)) == std::string(100, 'a'));
  reader.client->set_hook(before("read", [&] { need(writer->set_attributes({}, file.ino, new_size(40))); }));
  CHECK(need(read_at(*reader.file_system, by_reader, 0, 100)) == std::string(40, 'a'));
}

TEST_CASE("a reader that knew the end of a file meets what others have appended since") {
  TestVolume volume(small_objects());
  auto writer = volume.mount();
  auto reader = volume.mount();
  const auto file = create_file(*writer.file_system, "f");
  need(write_at(*writer.file_system, file.handle, 0, "one"));
  const auto by_reader = open_again(*reader.file_system, file.ino, O_RDONLY);
  CHECK(need(read_at(*reader.file_system, by_reader, 0, 100)) == "one");
  need(write_at(*writer.file_system, file.handle, 3, " two"));
  CHECK(need(read_at(*reader.file_system, by_reader, 0, 100)) == "one two");
}

TEST_CASE("of two overlapping writes in flight, one is done before the other begins, though the store runs it twice") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, "0000"));
  mount.client->set_hook(once_on("write", {Fault::Kind::run_again_later, ErrorCode::io}));
  auto first = begin_write(*mount.file_system, file.handle, 0, "1111");
  CHECK(mount.client->wait_for_held(1));
  auto second = begin_write(*mount.file_system, file.handle, 2, "2222");
  CHECK(second.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  CHECK(mount.client->counts().writes == 2);  // the second has not been sent: the store could run the first after it
  mount.client->release_all();
  need(first.get());
  need(second.get());
  CHECK(need(read_at(*mount.file_system, file.handle, 0, 100)) == "112222");
}

TEST_CASE("a truncate waits for the writes in flight, and what they wrote past the end does not come back") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, "0000"));
  mount.client->set_hook(once_on("write", {Fault::Kind::hold, ErrorCode::io}));
  auto write = begin_write(*mount.file_system, file.handle, 0, "11111111");
  CHECK(mount.client->wait_for_held(1));
  std::atomic<bool> cut = false;
  std::thread cutting([&] {
    need(mount->set_attributes({}, file.ino, new_size(2)));
    cut = true;
  });
  for (int i = 0; i < 1000 && !cut; ++i) std::this_thread::yield();
  CHECK_FALSE(cut);
  mount.client->release_all();
  need(write.get());
  cutting.join();
  need(mount->set_attributes({}, file.ino, new_size(6)));
  CHECK(need(read_at(*mount.file_system, file.handle, 0, 100)) == std::string("11\0\0\0\0", 6));
}

TEST_CASE("a write that cleans up first keeps its place before a later one") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = file_with_dirty_tail(mount);
  mount.client->set_hook(once_on("truncate", {Fault::Kind::hold}));
  auto first = begin_write(*mount.file_system, file.handle, 0, "1111");
  REQUIRE(mount.client->wait_for_held(1));
  auto second = begin_write(*mount.file_system, file.handle, 0, "2222");
  mount.client->release_all();
  need(first.get());
  need(second.get());
  CHECK(need(read_at(*mount.file_system, file.handle, 0, 100)) == "2222");
}

TEST_CASE("a write that cleans up first keeps its place before a truncate") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = file_with_dirty_tail(mount);
  mount.client->set_hook(once_on("truncate", {Fault::Kind::hold}));
  auto write = begin_write(*mount.file_system, file.handle, 0, "1111");
  REQUIRE(mount.client->wait_for_held(1));
  std::thread cutting([&] { need(mount->set_attributes({}, file.ino, new_size(0))); });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // it waits in the gate
  mount.client->release_all();
  need(write.get());
  cutting.join();
  CHECK(need(read_at(*mount.file_system, file.handle, 0, 100)).empty());
}

TEST_CASE("two writes that both clean up first wait for each other in turn") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = file_with_dirty_tail(mount);
  mount.client->set_hook(once_on("read", {Fault::Kind::hold}));
  std::string read = "????";
  std::promise<void> done;
  mount->read(file.handle, 0, read, [&done](const Result<std::size_t>&) { done.set_value(); });
  REQUIRE(mount.client->wait_for_held(1));
  auto first = begin_write(*mount.file_system, file.handle, 0, "11");
  auto second = begin_write(*mount.file_system, file.handle, 2, "22");
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // both have found what is to be cut, and wait to be alone
  mount.client->release_all();
  done.get_future().wait();
  need(first.get());
  need(second.get());
  CHECK(need(read_at(*mount.file_system, file.handle, 0, 100)) == "1122");
}

TEST_CASE("of writes that clean up first none waits for one whose object does not answer") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = file_with_dirty_tail(mount, object_bytes);
  mount.client->set_hook(once_on("read", {Fault::Kind::hold}));
  std::string read = "????";
  std::promise<void> done;
  mount->read(file.handle, 0, read, [&done](const Result<std::size_t>&) { done.set_value(); });
  REQUIRE(mount.client->wait_for_held(1));
  const std::string hangs = format::data_object(file.ino, ObjectIndex{1});
  mount.client->set_hook([&hangs](const StepInfo& info) {
    return info.kind == StepKind::write && info.object == hangs ? Fault{Fault::Kind::hold} : Fault{};
  });
  auto others = begin_write(*mount.file_system, file.handle, 0, "11");
  auto its = begin_write(*mount.file_system, file.handle, object_bytes, "22");
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // both have found what is to be cut, and wait to be alone
  mount.client->release_all();
  done.get_future().wait();
  need(others.get());
  CHECK(need(read_at(*mount.file_system, file.handle, 0, 2)) == "11");
  mount.client->set_hook(nullptr);
  mount.client->release_all();
  need(its.get());
}
