// SPDX-License-Identifier: LGPL-2.1-or-later
// A file's allocation map in memory, or as much of it as was read: which data objects may exist, and which are believed
// to be there (docs/DATA.md section 1). Not thread-safe: its owner's lock guards it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "format/records.h"

namespace lccfs::objects {

class AllocationMap {
 public:
  void set_block(std::uint64_t block, const format::MapBlock& bits) { blocks_[block] = bits; }
  const std::map<std::uint64_t, format::MapBlock>& blocks() const { return blocks_; }

  bool may_exist(ObjectIndex index) const;
  /// Which units of the object are believed there (format/layout.h).
  std::uint64_t units_there(ObjectIndex index) const;
  void set_may_exist(ObjectIndex index);
  void set_units_there(ObjectIndex index, std::uint64_t units);
  /// There is no such object any more.
  void set_removed(ObjectIndex index);

  /// The blocks that hold these objects, of which there is one at least.
  AllocationMap blocks_of(ObjectIndex first, std::uint64_t count) const;

  /// How many objects may exist.
  std::uint64_t mapped() const;
  /// The first object at or after `first` that may exist.
  std::optional<ObjectIndex> next_mapped(ObjectIndex first) const;
  /// All of them.
  std::set<std::uint64_t> mapped_from(ObjectIndex first) const;

  /// What of the object is believed there, and lies below the size.
  std::uint64_t bytes_there(ObjectIndex index, std::uint64_t object_size_bytes, std::uint64_t file_size_bytes) const;
  /// The same of all objects.
  std::uint64_t occupied_bytes(std::uint64_t object_size_bytes, std::uint64_t file_size_bytes) const;
  /// st_blocks: what of each object is believed there, and lies below the size, rounded up to 4 KiB, in 512-byte blocks.
  std::uint64_t blocks_512(std::uint64_t object_size_bytes, std::uint64_t file_size_bytes) const;

 private:
  /// Of all objects that are believed there.
  template <class Rounded>
  std::uint64_t sum_there(std::uint64_t object_size_bytes, std::uint64_t file_size_bytes, const Rounded& rounded) const;
  std::map<std::uint64_t, format::MapBlock> blocks_;
};

}  // namespace lccfs::objects
