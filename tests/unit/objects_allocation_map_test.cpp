// SPDX-License-Identifier: LGPL-2.1-or-later
#include "objects/allocation_map.h"

#include "format/layout.h"
#include "support/catch.h"

namespace lccfs::objects {
namespace {

constexpr std::uint64_t object = 4U << 20;
constexpr auto all = format::all_units;

TEST_CASE("an empty map knows of no object") {
  const AllocationMap map;
  CHECK(!map.may_exist(ObjectIndex{0}));
  CHECK(map.units_there(ObjectIndex{5000}) == 0);
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
  CHECK(map.units_there(ObjectIndex{1024}) == 0);
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
  map.set_units_there(ObjectIndex{7}, all);
  CHECK(map.units_there(ObjectIndex{7}) == all);
  map.set_units_there(ObjectIndex{7}, 0);
  CHECK(map.units_there(ObjectIndex{7}) == 0);
  CHECK(map.may_exist(ObjectIndex{7}));
}

TEST_CASE("of an object that is there in part, the block lists the units, and of no other") {
  AllocationMap map;
  for (const std::uint64_t index : {9, 3, 1023}) {
    map.set_may_exist(ObjectIndex{index});
    map.set_units_there(ObjectIndex{index}, index);
  }
  using Parts = std::vector<format::MapBlock::PartlyThere>;
  const auto& block = map.blocks().at(0);
  CHECK(block.partly_there == Parts{{3, 3}, {9, 9}, {1023, 1023}});
  map.set_units_there(ObjectIndex{9}, all);
  map.set_units_there(ObjectIndex{1023}, 5);
  CHECK(block.partly_there == Parts{{3, 3}, {1023, 5}});
  CHECK(block.believed_there.count() == 3);
  CHECK(map.units_there(ObjectIndex{9}) == all);
  map.set_units_there(ObjectIndex{3}, 0);
  map.set_units_there(ObjectIndex{1023}, 0);
  CHECK(block.partly_there.empty());
  CHECK(block.believed_there.count() == 1);
}

TEST_CASE("of an object that is there in part, its units below the size count") {
  AllocationMap map;
  map.set_may_exist(ObjectIndex{0});
  map.set_units_there(ObjectIndex{0}, 0b1011);
  const auto unit = object / 64;
  CHECK(map.occupied_bytes(object, object) == 3 * unit);
  CHECK(map.occupied_bytes(object, 4 * unit - 1) == 3 * unit - 1);
  CHECK(map.occupied_bytes(object, 3 * unit) == 2 * unit);
  CHECK(map.occupied_bytes(object, unit + 1) == unit + 1);
  CHECK(map.blocks_512(object, unit + 1) == unit / 512 + 8);
  CHECK(map.occupied_bytes(object, 0) == 0);
  map.set_units_there(ObjectIndex{0}, all - 1);
  CHECK(map.occupied_bytes(object, object) == object - unit);
}

TEST_CASE("blocks are the same whether a block of the map is counted whole or object by object") {
  AllocationMap map;
  for (std::uint64_t index = 0; index < 3000; index += 7) {
    map.set_may_exist(ObjectIndex{index});
    map.set_units_there(ObjectIndex{index}, index % 3 == 0 ? all : index + 1);
  }
  for (const std::uint64_t objects : {0, 1, 1023, 1024, 1025, 2048, 2999, 3072, 5000}) {
    for (const std::uint64_t size_bytes : {objects * object, objects * object + 123456}) {
      CHECK(map.blocks_512(object, size_bytes) == (map.occupied_bytes(object, size_bytes) + 4095) / 4096 * 8);
    }
  }
}

TEST_CASE("a part of the map has the blocks of its objects") {
  AllocationMap map;
  for (const std::uint64_t index : {0, 1023, 1024, 5000}) map.set_may_exist(ObjectIndex{index});
  CHECK(map.blocks_of(ObjectIndex{1023}, 1).mapped() == 2);
  CHECK(map.blocks_of(ObjectIndex{1023}, 2).mapped() == 3);
  CHECK(map.blocks_of(ObjectIndex{2048}, 100).mapped() == 0);
}

TEST_CASE("a piece touches the units it has a byte of, and has those that lie within it") {
  using format::units_with_any_of, format::units_within;
  const auto unit = object / 64;
  const auto piece = [](std::uint64_t begin, std::uint64_t size_bytes) {
    return format::Extent{ObjectIndex{0}, begin, size_bytes, begin};
  };
  CHECK(units_with_any_of(object, piece(0, 1)) == 1);
  CHECK(units_with_any_of(object, piece(unit - 1, 2)) == 3);
  CHECK(units_with_any_of(object, piece(unit, unit)) == 2);
  CHECK(units_with_any_of(object, piece(object - 1, 1)) == std::uint64_t{1} << 63);
  CHECK(units_with_any_of(object, piece(0, object)) == all);
  CHECK(units_within(object, piece(0, unit - 1)) == 0);
  CHECK(units_within(object, piece(1, 2 * unit)) == 2);
  CHECK(units_within(object, piece(1, unit - 2)) == 0);
  CHECK(units_within(object, piece(object - unit, unit)) == std::uint64_t{1} << 63);
  CHECK(units_within(object, piece(0, object)) == all);
}

TEST_CASE("blocks are counted below the size, in units of 4 KiB, of what is believed there") {
  AllocationMap map;
  map.set_may_exist(ObjectIndex{0});
  CHECK(map.blocks_512(object, object) == 0);
  map.set_units_there(ObjectIndex{0}, all);
  CHECK(map.blocks_512(object, 0) == 0);
  CHECK(map.blocks_512(object, 1) == 8);
  CHECK(map.blocks_512(object, 4096) == 8);
  CHECK(map.blocks_512(object, 4097) == 16);
  CHECK(map.blocks_512(object, 10 * object) == object / 512);
  map.set_units_there(ObjectIndex{2000}, all);
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
