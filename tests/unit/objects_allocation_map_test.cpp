// SPDX-License-Identifier: LGPL-2.1-or-later
#include "objects/allocation_map.h"

#include "support/catch.h"

namespace lccfs::objects {
namespace {

constexpr std::uint64_t object = 4U << 20;

TEST_CASE("an empty map knows of no object") {
  const AllocationMap map;
  CHECK(!map.may_exist(ObjectIndex{0}));
  CHECK(!map.believed_there(ObjectIndex{5000}));
  CHECK(map.mapped_from(ObjectIndex{0}).empty());
  CHECK(map.blocks_512(object, std::uint64_t{1} << 40) == 0);
}

TEST_CASE("bits are of one object each, over the borders of blocks") {
  AllocationMap map;
  for (const std::uint64_t index : {0, 1023, 1024, 5000}) map.set_may_exist(ObjectIndex{index});
  CHECK(map.blocks().size() == 3);
  CHECK(map.may_exist(ObjectIndex{1023}));
  CHECK(map.may_exist(ObjectIndex{1024}));
  CHECK(!map.may_exist(ObjectIndex{1022}));
  CHECK(!map.may_exist(ObjectIndex{1025}));
  CHECK(!map.believed_there(ObjectIndex{1024}));
  CHECK(map.mapped_from(ObjectIndex{0}) == std::set<std::uint64_t>{0, 1023, 1024, 5000});
  CHECK(map.mapped_from(ObjectIndex{1023}) == std::set<std::uint64_t>{1023, 1024, 5000});
  CHECK(map.mapped_from(ObjectIndex{1024}) == std::set<std::uint64_t>{1024, 5000});
  CHECK(map.mapped_from(ObjectIndex{5001}).empty());
  CHECK(map.next_mapped(ObjectIndex{0}) == ObjectIndex{0});
  CHECK(map.next_mapped(ObjectIndex{1}) == ObjectIndex{1023});
  CHECK(map.next_mapped(ObjectIndex{1024}) == ObjectIndex{1024});
  CHECK(map.next_mapped(ObjectIndex{1025}) == ObjectIndex{5000});
  CHECK_FALSE(map.next_mapped(ObjectIndex{5001}));
}

TEST_CASE("what is believed there can be taken back, what may exist stays") {
  AllocationMap map;
  map.set_may_exist(ObjectIndex{7});
  map.set_believed_there(ObjectIndex{7}, true);
  CHECK(map.believed_there(ObjectIndex{7}));
  map.set_believed_there(ObjectIndex{7}, false);
  CHECK(!map.believed_there(ObjectIndex{7}));
  CHECK(map.may_exist(ObjectIndex{7}));
}

TEST_CASE("blocks are counted below the size, in units of 4 KiB, of what is believed there") {
  AllocationMap map;
  map.set_may_exist(ObjectIndex{0});
  CHECK(map.blocks_512(object, object) == 0);
  map.set_believed_there(ObjectIndex{0}, true);
  CHECK(map.blocks_512(object, 0) == 0);
  CHECK(map.blocks_512(object, 1) == 8);
  CHECK(map.blocks_512(object, 4096) == 8);
  CHECK(map.blocks_512(object, 4097) == 16);
  CHECK(map.blocks_512(object, 10 * object) == object / 512);
  map.set_believed_there(ObjectIndex{2000}, true);
  CHECK(map.blocks_512(object, 10 * object) == object / 512);
  CHECK(map.blocks_512(object, 2000 * object + 1) == object / 512 + 8);
}

TEST_CASE("a block as stored is taken whole") {
  format::MapBlock bits;
  bits.may_exist.set(3);
  AllocationMap map;
  map.set_block(2, bits);
  CHECK(map.may_exist(ObjectIndex{2051}));
  CHECK(map.blocks().at(2) == bits);
}

}  // namespace
}  // namespace lccfs::objects
