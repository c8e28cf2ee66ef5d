// SPDX-License-Identifier: LGPL-2.1-or-later
#include "objects/allocation_map.h"

#include <algorithm>
#include <functional>

#include "format/layout.h"

namespace lccfs::objects {

using format::MapBlock;

namespace {
constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t sector_bytes = 512;

/// Where it stands, or would.
auto part_of(auto& block, std::uint64_t bit) {
  return std::ranges::lower_bound(block.partly_there, bit, {}, &MapBlock::PartlyThere::object);
}

std::uint64_t units_in(const MapBlock& block, std::uint64_t bit) {
  if (!block.believed_there[bit]) return 0;
  const auto part = part_of(block, bit);
  return part != block.partly_there.end() && part->object == bit ? part->units : format::all_units;
}
}  // namespace

bool AllocationMap::may_exist(ObjectIndex index) const {
  const auto block = blocks_.find(index.value / MapBlock::objects);
  return block != blocks_.end() && block->second.may_exist[index.value % MapBlock::objects];
}

std::uint64_t AllocationMap::units_there(ObjectIndex index) const {
  const auto block = blocks_.find(index.value / MapBlock::objects);
  return block == blocks_.end() ? 0 : units_in(block->second, index.value % MapBlock::objects);
}

void AllocationMap::set_may_exist(ObjectIndex index) {
  blocks_[index.value / MapBlock::objects].may_exist.set(index.value % MapBlock::objects);
}

void AllocationMap::set_units_there(ObjectIndex index, std::uint64_t units) {
  auto& block = blocks_[index.value / MapBlock::objects];
  const auto bit = index.value % MapBlock::objects;
  block.believed_there.set(bit, units != 0);
  const auto part = part_of(block, bit);
  const bool is_listed = part != block.partly_there.end() && part->object == bit;
  if (units == 0 || units == format::all_units) {
    if (is_listed) block.partly_there.erase(part);
  } else if (is_listed) {
    part->units = units;
  } else {
    block.partly_there.insert(part, {static_cast<std::uint16_t>(bit), units});
  }
}

void AllocationMap::set_removed(ObjectIndex index) {
  set_units_there(index, 0);
  blocks_[index.value / MapBlock::objects].may_exist.reset(index.value % MapBlock::objects);
}

AllocationMap AllocationMap::blocks_of(ObjectIndex first, std::uint64_t count) const {
  AllocationMap part;
  const auto end = blocks_.upper_bound((first.value + count - 1) / MapBlock::objects);
  part.blocks_.insert(blocks_.lower_bound(first.value / MapBlock::objects), end);
  return part;
}

std::optional<ObjectIndex> AllocationMap::next_mapped(ObjectIndex first) const {
  const auto first_block = first.value / MapBlock::objects;
  for (auto block = blocks_.lower_bound(first_block); block != blocks_.end(); ++block) {
    const auto from = block->first == first_block ? first.value % MapBlock::objects : 0;
    const auto& bits = block->second.may_exist;
    const auto bit = from == 0 ? bits._Find_first() : bits._Find_next(from - 1);
    if (bit < bits.size()) return ObjectIndex{block->first * MapBlock::objects + bit};
  }
  return std::nullopt;
}

std::set<std::uint64_t> AllocationMap::mapped_from(ObjectIndex first) const {
  std::set<std::uint64_t> mapped;
  for (auto block = blocks_.lower_bound(first.value / MapBlock::objects); block != blocks_.end(); ++block) {
    const auto base = block->first * MapBlock::objects;
    const auto& bits = block->second.may_exist;
    for (auto bit = bits._Find_first(); bit < bits.size(); bit = bits._Find_next(bit)) {
      if (base + bit >= first.value) mapped.insert(mapped.end(), base + bit);
    }
  }
  return mapped;
}

std::uint64_t AllocationMap::mapped() const {
  std::uint64_t count = 0;
  for (const auto& [block, bits] : blocks_) count += bits.may_exist.count();
  return count;
}

std::uint64_t AllocationMap::bytes_there(ObjectIndex index, std::uint64_t object_size_bytes,
                                         std::uint64_t file_size_bytes) const {
  return format::bytes_of_units(object_size_bytes, units_there(index),
                                format::bytes_within(object_size_bytes, index, file_size_bytes));
}

/// Of a large image no bit is looked at: only the block that the size cuts is walked.
template <class Rounded>
std::uint64_t AllocationMap::sum_there(std::uint64_t object_size_bytes, std::uint64_t file_size_bytes,
                                       const Rounded& rounded) const {
  const auto whole_objects = file_size_bytes / object_size_bytes;
  std::uint64_t bytes = 0;
  for (const auto& [number, block] : blocks_) {
    const auto first = number * MapBlock::objects;
    const auto& there = block.believed_there;
    if (first + MapBlock::objects <= whole_objects) {
      bytes += (there.count() - block.partly_there.size()) * rounded(object_size_bytes);
      for (const auto& part : block.partly_there) {
        bytes += rounded(format::bytes_of_units(object_size_bytes, part.units, object_size_bytes));
      }
      continue;
    }
    for (auto bit = there._Find_first(); bit < there.size(); bit = there._Find_next(bit)) {
      bytes += rounded(bytes_there(ObjectIndex{first + bit}, object_size_bytes, file_size_bytes));
    }
  }
  return bytes;
}

std::uint64_t AllocationMap::occupied_bytes(std::uint64_t object_size_bytes, std::uint64_t file_size_bytes) const {
  return sum_there(object_size_bytes, file_size_bytes, std::identity());
}

std::uint64_t AllocationMap::blocks_512(std::uint64_t object_size_bytes, std::uint64_t file_size_bytes) const {
  const auto whole_pages = [](std::uint64_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; };
  return sum_there(object_size_bytes, file_size_bytes, whole_pages) / sector_bytes;
}

}  // namespace lccfs::objects
