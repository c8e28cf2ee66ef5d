// SPDX-License-Identifier: LGPL-2.1-or-later
#include "format/layout.h"

#include <algorithm>

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

std::uint64_t bytes_within(std::uint64_t object_size_bytes, ObjectIndex index, std::uint64_t file_size_bytes) {
  const std::uint64_t whole = file_size_bytes / object_size_bytes;
  if (index.value < whole) return object_size_bytes;
  return index.value == whole ? file_size_bytes % object_size_bytes : 0;
}

}  // namespace lccfs::format
