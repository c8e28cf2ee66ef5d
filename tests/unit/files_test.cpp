// SPDX-License-Identifier: LGPL-2.1-or-later
// Bytes, sizes and times of one client's files.
#include "format/object_names.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

std::uint64_t size_of(FileSystem& fs, Ino ino) { return need(fs.get_attributes(ino)).attributes.size_bytes; }
std::uint64_t blocks_of(FileSystem& fs, Ino ino) { return need(fs.get_attributes(ino)).attributes.blocks_512; }

}  // namespace

TEST_CASE("what was written is read back, over the borders of objects") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  std::string text(3 * object_bytes + 5, 'x');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  REQUIRE(need(write_at(*mount.file_system, file.handle, 7, text)) == text.size());
  CHECK(need(read_at(*mount.file_system, file.handle, 7, text.size())) == text);
  CHECK(need(read_at(*mount.file_system, file.handle, 0, 8)) == std::string(7, '\0') + text[0]);
  CHECK(need(read_at(*mount.file_system, file.handle, object_bytes - 2, 4)) == text.substr(object_bytes - 9, 4));
  CHECK(need(read_at(*mount.file_system, file.handle, 7 + text.size(), 10)).empty());
  CHECK(size_of(*mount.file_system, file.ino) == 7 + text.size());
}

TEST_CASE("a hole reads as zeros, takes no space and no store operation") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 5 * object_bytes, "end"));
  mount.client->reset_record();
  CHECK(need(read_at(*mount.file_system, file.handle, 100, 2 * object_bytes)) == std::string(2 * object_bytes, '\0'));
  CHECK(mount.client->counts() == StepCounts{});
  CHECK(blocks_of(*mount.file_system, file.ino) == 8);
}

TEST_CASE("reading or overwriting 4 KiB of a mapped object is exactly one operation") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "disk");
  const std::string page(4096, 'p');
  need(write_at(*mount.file_system, file.handle, 0, std::string(65536, 'o')));
  mount.client->reset_record();
  need(write_at(*mount.file_system, file.handle, 8192, page));
  CHECK(mount.client->counts() == StepCounts{.writes = 1});
  mount.client->reset_record();
  CHECK(need(read_at(*mount.file_system, file.handle, 8192, 4096)) == page);
  CHECK(mount.client->counts() == StepCounts{.reads = 1});
}

TEST_CASE("fsync with nothing dirty costs nothing, fdatasync after an overwrite neither") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "disk");
  need(write_at(*mount.file_system, file.handle, 0, std::string(65536, 'o')));
  need(mount->fsync(file.handle, false));
  mount.client->reset_record();
  need(mount->fsync(file.handle, false));
  CHECK(mount.client->counts() == StepCounts{});
  need(write_at(*mount.file_system, file.handle, 4096, "new"));
  mount.client->reset_record();
  need(mount->fsync(file.handle, true));
  CHECK(mount.client->counts() == StepCounts{});
  need(mount->fsync(file.handle, false));
  CHECK(mount.client->counts() == StepCounts{.applies = 1});
}

TEST_CASE("a new file of one object costs its bits, its bytes, and one step at close") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  mount.client->reset_record();
  need(write_at(*mount.file_system, file.handle, 0, "hello"));
  need(mount->set_attributes(
      {}, file.ino,
      {.mode = {}, .uid = {}, .gid = {}, .size_bytes = {}, .atime = TimeSpec{7, 0}, .mtime = TimeSpec{8, 9}}));
  close_file(*mount.file_system, file.handle);
  CHECK(mount.client->counts() == StepCounts{.applies = 2, .queries = 1, .writes = 1});
  const auto attributes = need(mount->get_attributes(file.ino)).attributes;
  CHECK(attributes.mtime == TimeSpec{8, 9});
  CHECK(attributes.atime == TimeSpec{7, 0});
  CHECK(attributes.size_bytes == 5);
}

TEST_CASE("a size or time that stays dirty is stored after five seconds") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, "hello"));
  mount.client->reset_record();
  mount->tick();
  CHECK(mount.client->counts().applies == 0);
  volume.clock().advance(std::chrono::seconds(6));
  mount->tick();
  const auto stored = [&] { return mount.client->counts().applies == 1; };
  for (int i = 0; i < 10000 && !stored(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(stored());
}

TEST_CASE("truncate cuts what lies behind, and growing again shows zeros") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, std::string(3 * object_bytes, 'x')));
  mount.client->reset_record();
  need(mount->set_attributes({}, file.ino,
                             {.mode = {}, .uid = {}, .gid = {}, .size_bytes = 100, .atime = {}, .mtime = {}}));
  // One kept object is cut; two were written behind it, and two more marked ahead of the writer.
  CHECK(mount.client->counts() == StepCounts{.applies = 1, .queries = 1, .truncates = 1, .removes = 4});
  CHECK(mount.client->trace().front().starts_with("store size"));  // the commit comes first
  need(mount->set_attributes({}, file.ino,
                             {.mode = {}, .uid = {}, .gid = {}, .size_bytes = object_bytes, .atime = {}, .mtime = {}}));
  CHECK(need(read_at(*mount.file_system, file.handle, 98, 4)) == std::string("xx\0\0", 4));
  CHECK(blocks_of(*mount.file_system, file.ino) == object_bytes / 512);
}

TEST_CASE("O_TRUNC empties a file at open") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, "content"));
  close_file(*mount.file_system, file.handle);
  const auto again = need(mount->open({}, file.ino, O_RDWR | O_TRUNC));
  CHECK(size_of(*mount.file_system, file.ino) == 0);
  CHECK(need(read_at(*mount.file_system, again.handle, 0, 10)).empty());
}

TEST_CASE("a sequential writer marks objects ahead, a writer of one object does not") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  mount.client->reset_record();
  for (std::uint64_t i = 0; i < 64; ++i) {
    need(write_at(*mount.file_system, file.handle, i * object_bytes, std::string(object_bytes, 'x')));
  }
  CHECK(mount.client->counts().writes == 64);
  CHECK(mount.client->counts().applies <= 9);
  CHECK(blocks_of(*mount.file_system, file.ino) == 64 * object_bytes / 512);
}

TEST_CASE("a write that finds the store full says so, and leaves nothing past the end") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, "start"));
  mount.client->set_hook([](const StepInfo& info) {
    return info.kind == StepKind::write && info.object.ends_with(".1") ? Fault{Fault::Kind::fail, ErrorCode::no_space}
                                                                       : Fault{};
  });
  const auto written = write_at(*mount.file_system, file.handle, 5, std::string(2 * object_bytes, 'y'));
  REQUIRE_FALSE(written);
  CHECK(written.error().code == ErrorCode::no_space);
  mount.client->set_hook(nullptr);
  CHECK(size_of(*mount.file_system, file.ino) == 5);
  need(mount->set_attributes({}, file.ino,
                             {.mode = {}, .uid = {}, .gid = {}, .size_bytes = object_bytes, .atime = {}, .mtime = {}}));
  CHECK(need(read_at(*mount.file_system, file.handle, 0, 8)) == std::string("start\0\0\0", 8));
}

TEST_CASE("a write by another user clears the setuid and setgid bits, one by root does not") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f", O_RDWR, 06755);
  need(write_at(*mount.file_system, file.handle, 0, "root"));
  CHECK(need(mount->get_attributes(file.ino)).attributes.mode == 06755);
  need(write_at(*mount.file_system, file.handle, 0, "user", Caller{1000, 1000}));
  CHECK(need(mount->get_attributes(file.ino)).attributes.mode == 0755);
}

TEST_CASE("a handle is good for what it was opened for, and until it is closed") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  const auto reader = need(mount->open({}, file.ino, O_RDONLY));
  CHECK(write_at(*mount.file_system, reader.handle, 0, "no").error().code == ErrorCode::bad_handle);
  close_file(*mount.file_system, file.handle);
  CHECK(read_at(*mount.file_system, file.handle, 0, 1).error().code == ErrorCode::bad_handle);
}

TEST_CASE("a file cannot grow past 2^63 - 1 bytes") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  const auto limit = (std::uint64_t{1} << 63) - 1;
  CHECK(write_at(*mount.file_system, file.handle, limit, "x").error().code == ErrorCode::file_too_large);
  need(write_at(*mount.file_system, file.handle, limit - 1, "x"));
  CHECK(size_of(*mount.file_system, file.ino) == limit);
  CHECK(write_at(*mount.file_system, file.handle, 0, "x"));
}

TEST_CASE("the kernel keeps its pages of a file that is as it was last told, and no others") {
  TestVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, "one"));
  close_file(*mount.file_system, file.handle);
  need(mount->get_attributes(file.ino));
  auto open = need(mount->open({}, file.ino, O_RDONLY));
  CHECK(open.keep_pages);
  close_file(*mount.file_system, open.handle);
  const auto elsewhere = need(other->open({}, file.ino, O_RDWR));
  volume.clock().advance(std::chrono::milliseconds(1));
  need(write_at(*other.file_system, elsewhere.handle, 0, "two"));
  close_file(*other.file_system, elsewhere.handle);
  open = need(mount->open({}, file.ino, O_RDONLY));
  CHECK_FALSE(open.keep_pages);
  CHECK(need(read_at(*mount.file_system, open.handle, 0, 10)) == "two");
}
