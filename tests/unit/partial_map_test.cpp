// SPDX-License-Identifier: LGPL-2.1-or-later
// The allocation map of a large file is read where it is needed: the first blocks of it do for a lookup and an open.
#include <algorithm>

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
