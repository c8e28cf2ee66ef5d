// SPDX-License-Identifier: LGPL-2.1-or-later
#include "objects/allocation_map.h"

#include "format/layout.h"

namespace lccfs::objects {

using format::MapBlock;

namespace {
constexpr std::uint64_t unit_bytes = 4096;
constexpr std::uint64_t sector_bytes = 512;
}  // namespace

bool AllocationMap::may_exist(ObjectIndex index) const {
  const auto block = blocks_.find(index.value / MapBlock::objects);
  return block != blocks_.end() && block->second.may_exist[index.value % MapBlock::objects];
}

bool AllocationMap::believed_there(ObjectIndex index) const {
  const auto block = blocks_.find(index.value / MapBlock::objects);
  return block != blocks_.end() && block->second.believed_there[index.value % MapBlock::objects];
}

void AllocationMap::set_may_exist(ObjectIndex index) {
  blocks_[index.value / MapBlock::objects].may_exist.set(index.value % MapBlock::objects);
}

void AllocationMap::set_believed_there(ObjectIndex index, bool there) {
  blocks_[index.value / MapBlock::objects].believed_there.set(index.value % MapBlock::objects, there);
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

template <class Work>
void AllocationMap::for_each_there(const Work& work) const {
  for (const auto& [block, bits] : blocks_) {
    const auto& there = bits.believed_there;
    for (auto bit = there._Find_first(); bit < there.size(); bit = there._Find_next(bit)) {
      work(ObjectIndex{block * MapBlock::objects + bit});
    }
  }
}

std::uint64_t AllocationMap::occupied_bytes(std::uint64_t object_size_bytes, std::uint64_t file_size_bytes) const {
  std::uint64_t bytes = 0;
  for_each_there([&](ObjectIndex index) { bytes += format::bytes_within(object_size_bytes, index, file_size_bytes); });
  return bytes;
}

std::uint64_t AllocationMap::blocks_512(std::uint64_t object_size_bytes, std::uint64_t file_size_bytes) const {
  std::uint64_t units = 0;
  for_each_there([&](ObjectIndex index) {
    const auto bytes = format::bytes_within(object_size_bytes, index, file_size_bytes);
    units += (bytes + unit_bytes - 1) / unit_bytes;
  });
  return units * (unit_bytes / sector_bytes);
}

}  // namespace lccfs::objects
