// SPDX-License-Identifier: LGPL-2.1-or-later
// The allocation map of a large file is read where it is needed: the first blocks of it do for a lookup and an open.
#include <algorithm>
#include <atomic>

#include "format/object_names.h"
#include "format/records.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

constexpr std::uint64_t block_bytes = format::MapBlock::objects * object_bytes;

/// A file that has a byte in each of so many blocks of its map, closed.
Ino file_with_blocks(Mount& mount, std::uint64_t blocks) {
  const auto file = create_file(*mount.file_system, "image");
  for (std::uint64_t i = 0; i < blocks; ++i) need(write_at(*mount.file_system, file.handle, i * block_bytes, "x"));
  close_file(*mount.file_system, file.handle);
  return file.ino;
}

/// How many keys of the map that client was sent.
class MapKeys {
 public:
  explicit MapKeys(Mount& mount) : mount_(mount) {
    mount.client->set_hook([this](const StepInfo& info) {
      if (info.read == nullptr) return Fault{};
      for (const auto& range : info.read->ranges) {
        if (range.prefix == "m/") limits.push_back(range.limit);
      }
      return Fault{};
    });
  }
  ~MapKeys() { mount_.client->set_hook({}); }
  MapKeys(const MapKeys&) = delete;
  MapKeys& operator=(const MapKeys&) = delete;
  std::vector<std::uint32_t> limits;

 private:
  Mount& mount_;
};

}  // namespace

TEST_CASE("lookup and open read the first blocks of a map; what a file occupies is told by who reads all of it") {
  TestVolume volume(small_objects());
  auto writer = volume.mount();
  const auto ino = file_with_blocks(writer, 20);
  auto mount = volume.mount();
  {
    const MapKeys read(mount);
    const auto entry = need(mount->lookup(root_ino, "image"));
    CHECK(entry.attributes_ttl == std::chrono::nanoseconds(0));  // the kernel asks when somebody wants to know
    const auto opened = need(mount->open({}, ino, O_RDONLY));
    CHECK(std::ranges::all_of(read.limits, [](auto limit) { return limit <= 16; }));
    CHECK(!read.limits.empty());
    mount->release(opened.handle);
  }
  const auto exact = need(mount->get_attributes(ino));
  CHECK(exact.attributes.blocks_512 == need(writer->get_attributes(ino)).attributes.blocks_512);
  CHECK(exact.attributes_ttl == std::chrono::seconds(1));
}

TEST_CASE("bytes after the first blocks of a map are read without a lease, written, and cut") {
  TestVolume volume(small_objects());
  auto writer = volume.mount();
  const auto ino = file_with_blocks(writer, 20);
  auto mount = volume.mount();
  const auto opened = need(mount->open({}, ino, O_RDWR));
  CHECK(need(read_at(*mount.file_system, opened.handle, 19 * block_bytes, 1)) == "x");
  CHECK(need(read_at(*mount.file_system, opened.handle, 18 * block_bytes + 1, 1)) == std::string(1, '\0'));
  need(write_at(*mount.file_system, opened.handle, 19 * block_bytes, "y"));
  SetAttributes shorter;
  shorter.size_bytes = 17 * block_bytes;
  need(mount->set_attributes({}, ino, shorter));
  mount->release(opened.handle);
  const auto left = need(volume.new_client()->list({})).names;
  CHECK(std::ranges::none_of(
      left, [&](const auto& name) { return name == format::data_object(ino, ObjectIndex{19 * 1024}); }));
  CHECK(std::ranges::count_if(left, [](const auto& name) { return name.starts_with("Data."); }) == 17);
}

TEST_CASE("an open while the lease is being taken does not put a part of the map in place of the whole") {
  TestVolume volume(small_objects());
  auto writer = volume.mount();
  const auto ino = file_with_blocks(writer, 20);
  SetAttributes shorter;
  shorter.size_bytes =
      18 * block_bytes + 1;  // leaves bits "may exist" past the size: who takes the lease over cuts there
  need(writer->set_attributes({}, ino, shorter));

  auto mount = volume.mount();
  const auto handle = open_again(*mount.file_system, ino);
  std::atomic<bool> answer_is_lost{false}, cuts{false};
  mount.client->set_hook([&](const StepInfo& info) {
    if (info.step == "take lease" && !answer_is_lost.exchange(true)) return Fault{Fault::Kind::lost_answer_applied};
    if (info.kind == StepKind::remove && !cuts.exchange(true)) return Fault{Fault::Kind::hold};
    return Fault{};
  });
  auto written = begin_write(*mount.file_system, handle, 3 * block_bytes, "z");
  REQUIRE(mount.client->wait_for_held(1));
  SetAttributes open_to_all;
  open_to_all.mode = 0666;
  need(writer->set_attributes({}, ino, open_to_all));  // the inode is of a newer version now
  const auto second = open_again(*mount.file_system, ino);
  mount.client->release_all();
  CHECK(need(written.get()) == 1);
  CHECK(need(read_at(*mount.file_system, second, 17 * block_bytes, 1)) == "x");
  need(write_at(*mount.file_system, second, 17 * block_bytes + 5 * object_bytes, "y"));
  mount.client->set_hook({});
  close_file(*mount.file_system, second);
  close_file(*mount.file_system, handle);

  auto reader = volume.mount();
  const auto again = open_again(*reader.file_system, ino, O_RDONLY);
  CHECK(need(read_at(*reader.file_system, again, 17 * block_bytes, 1)) == "x");
  CHECK(need(read_at(*reader.file_system, again, 17 * block_bytes + 5 * object_bytes, 1)) == "y");
}
