// SPDX-License-Identifier: LGPL-2.1-or-later
#include "format/layout.h"

#include <algorithm>
#include <bit>

#include "format/records.h"

namespace lccfs::format {

std::vector<Extent> extents(std::uint64_t object_size_bytes, std::uint64_t offset_bytes, std::uint64_t length_bytes) {
  std::vector<Extent> result;
  const std::uint64_t end = offset_bytes + length_bytes;
  for (std::uint64_t at = offset_bytes; at < end;) {
    const std::uint64_t within = at % object_size_bytes;
    const std::uint64_t length = std::min(object_size_bytes - within, end - at);
    result.push_back({ObjectIndex{at / object_size_bytes}, within, length, at});
    at += length;
  }
  return result;
}

std::uint64_t object_count(std::uint64_t object_size_bytes, std::uint64_t file_size_bytes) {
  return file_size_bytes / object_size_bytes + (file_size_bytes % object_size_bytes != 0 ? 1 : 0);
}

std::uint64_t most_map_blocks(std::uint64_t object_size_bytes) {
  return (object_count(object_size_bytes, file_size_limit_bytes) + MapBlock::objects - 1) / MapBlock::objects;
}

std::uint64_t bytes_within(std::uint64_t object_size_bytes, ObjectIndex index, std::uint64_t file_size_bytes) {
  const std::uint64_t whole = file_size_bytes / object_size_bytes;
  if (index.value < whole) return object_size_bytes;
  return index.value == whole ? file_size_bytes % object_size_bytes : 0;
}

/// [first, end)
static std::uint64_t units_between(std::uint64_t first, std::uint64_t end) {
  if (first >= end) return 0;
  const auto below_end = end == units_of_an_object ? all_units : (std::uint64_t{1} << end) - 1;
  return below_end & (all_units << first);
}

std::uint64_t units_with_any_of(std::uint64_t object_size_bytes, const Extent& piece) {
  const auto unit_bytes = object_size_bytes / units_of_an_object;
  const auto end = piece.object_offset_bytes + piece.length_bytes;
  return units_between(piece.object_offset_bytes / unit_bytes, (end + unit_bytes - 1) / unit_bytes);
}

std::uint64_t units_within(std::uint64_t object_size_bytes, const Extent& piece) {
  const auto unit_bytes = object_size_bytes / units_of_an_object;
  const auto end = piece.object_offset_bytes + piece.length_bytes;
  return units_between((piece.object_offset_bytes + unit_bytes - 1) / unit_bytes, end / unit_bytes);
}

std::uint64_t bytes_of_units(std::uint64_t object_size_bytes, std::uint64_t units, std::uint64_t object_bytes) {
  const auto unit_bytes = object_size_bytes / units_of_an_object;
  const auto whole = object_bytes / unit_bytes;
  const auto bytes = static_cast<std::uint64_t>(std::popcount(units & units_between(0, whole))) * unit_bytes;
  const bool has_last = whole < units_of_an_object && (units >> whole & 1) != 0;
  return has_last ? bytes + object_bytes % unit_bytes : bytes;
}

}  // namespace lccfs::format
