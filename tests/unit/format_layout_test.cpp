// SPDX-License-Identifier: LGPL-2.1-or-later
#include "format/layout.h"

#include "format/records.h"
#include "support/catch.h"

namespace lccfs::format {
namespace {

constexpr std::uint64_t mib = 1U << 20;
constexpr std::uint64_t object = 4 * mib;
constexpr std::uint64_t limit = file_size_limit_bytes;

TEST_CASE("a range is cut at the borders of objects") {
  CHECK(extents(object, 0, 0).empty());
  CHECK(extents(object, object, 0).empty());
  CHECK(extents(object, 0, object) == std::vector<Extent>{{ObjectIndex{0}, 0, object, 0}});
  CHECK(extents(object, object, 1) == std::vector<Extent>{{ObjectIndex{1}, 0, 1, object}});
  CHECK(extents(object, object - 1, 1) == std::vector<Extent>{{ObjectIndex{0}, object - 1, 1, object - 1}});
  CHECK(extents(object, object - 1, 2) ==
        std::vector<Extent>{{ObjectIndex{0}, object - 1, 1, object - 1}, {ObjectIndex{1}, 0, 1, object}});
  CHECK(extents(object, mib, 8 * mib) == std::vector<Extent>{{ObjectIndex{0}, mib, 3 * mib, mib},
                                                             {ObjectIndex{1}, 0, 4 * mib, 4 * mib},
                                                             {ObjectIndex{2}, 0, mib, 8 * mib}});
}

TEST_CASE("the last bytes that a file can have are in the last object") {
  const auto last = extents(object, limit - 2, 2);
  CHECK(last == std::vector<Extent>{{ObjectIndex{limit / object}, object - 3, 2, limit - 2}});
  const auto border = (std::uint64_t{1} << 63) - object;
  CHECK(extents(object, border - 1, object) ==
        std::vector<Extent>{{ObjectIndex{border / object - 1}, object - 1, 1, border - 1},
                            {ObjectIndex{border / object}, 0, object - 1, border}});
}

TEST_CASE("a file has as many objects as its size needs") {
  CHECK(object_count(object, 0) == 0);
  CHECK(object_count(object, 1) == 1);
  CHECK(object_count(object, object) == 1);
  CHECK(object_count(object, object + 1) == 2);
  CHECK(object_count(object, limit) == (std::uint64_t{1} << 63) / object);
}

TEST_CASE("the map of the largest file has a block for each 1024 of its objects") {
  CHECK(most_map_blocks(object_size_min_bytes) == std::uint64_t{1} << 37);
  CHECK(most_map_blocks(object) == std::uint64_t{1} << 31);
  CHECK(most_map_blocks(object_size_max_bytes) == std::uint64_t{1} << 28);
}

TEST_CASE("of an object what lies below the size counts") {
  CHECK(bytes_within(object, ObjectIndex{0}, 0) == 0);
  CHECK(bytes_within(object, ObjectIndex{0}, 5) == 5);
  CHECK(bytes_within(object, ObjectIndex{0}, object) == object);
  CHECK(bytes_within(object, ObjectIndex{1}, object) == 0);
  CHECK(bytes_within(object, ObjectIndex{1}, object + 1) == 1);
  CHECK(bytes_within(object, ObjectIndex{limit / object}, limit) == object - 1);
  CHECK(bytes_within(object, ObjectIndex{~std::uint64_t{0}}, limit) == 0);
}

}  // namespace
}  // namespace lccfs::format
