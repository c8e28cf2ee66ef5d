// SPDX-License-Identifier: LGPL-2.1-or-later
// Where the bytes of a file are: pure arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "lccfs/types.h"

namespace lccfs::format {

/// A piece of a byte range of a file that lies in one data object.
struct Extent {
  ObjectIndex index;
  std::uint64_t object_offset_bytes = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t file_offset_bytes = 0;
  bool operator==(const Extent&) const = default;
};

/// In order of the file; empty for length 0. offset + length must not overflow 2^63.
std::vector<Extent> extents(std::uint64_t object_size_bytes, std::uint64_t offset_bytes, std::uint64_t length_bytes);

/// How many data objects a file of that size can have.
std::uint64_t object_count(std::uint64_t object_size_bytes, std::uint64_t file_size_bytes);

/// How many blocks the allocation map of the largest file has: an m/ key of another one is no key of the format.
std::uint64_t most_map_blocks(std::uint64_t object_size_bytes);

/// What of object `index` lies below the file's size, in bytes.
std::uint64_t bytes_within(std::uint64_t object_size_bytes, ObjectIndex index, std::uint64_t file_size_bytes);

/// A data object is cut into 64 units, of 64 KiB if it has 4 MiB. A set of them has one bit for each, the first unit's
/// is the lowest.
inline constexpr std::uint64_t units_of_an_object = 64;
inline constexpr std::uint64_t all_units = ~std::uint64_t{0};
/// Those of which the piece has a byte.
std::uint64_t units_with_any_of(std::uint64_t object_size_bytes, const Extent& piece);
/// Those that the piece has all of.
std::uint64_t units_within(std::uint64_t object_size_bytes, const Extent& piece);
/// The bytes of these units among the object's first `object_bytes`.
std::uint64_t bytes_of_units(std::uint64_t object_size_bytes, std::uint64_t units, std::uint64_t object_bytes);

}  // namespace lccfs::format
