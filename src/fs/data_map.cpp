// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/data_map.h"

#include <algorithm>

#include "base/completions.h"
#include "format/object_names.h"

namespace lccfs {

namespace {
// Data is mostly found in the first object: the questions double up to this many in flight.
constexpr std::size_t most_questions_in_flight = 16;

/// In order, those that touch or overlap as one.
std::vector<ByteRange> joined(std::vector<ByteRange> ranges) {
  std::ranges::sort(ranges, {}, &ByteRange::begin);
  std::vector<ByteRange> all;
  for (const ByteRange& range : ranges) {
    if (all.empty() || all.back().end < range.begin) {
      all.push_back(range);
    } else {
      all.back().end = std::max(all.back().end, range.end);
    }
  }
  return all;
}

}  // namespace

std::vector<format::Extent> mapped_pieces(const AllocationMap& map, std::uint64_t object_size_bytes, ByteRange range,
                                          std::size_t at_most) {
  std::vector<format::Extent> pieces;
  while (range.begin < range.end && pieces.size() < at_most) {
    const auto next = map.next_mapped(ObjectIndex{range.begin / object_size_bytes});
    if (!next || next->value > (range.end - 1) / object_size_bytes) break;
    const auto begin = std::max(range.begin, next->value * object_size_bytes);
    const auto end = std::min(range.end, (next->value + 1) * object_size_bytes);
    pieces.push_back({*next, begin % object_size_bytes, end - begin, begin});
    range.begin = end;
  }
  return pieces;
}

DataMap::DataMap(ObjectStore& store, std::uint64_t object_size_bytes, const Inode& view,
                 std::vector<ByteRange> buffered)
    : store_(store),
      object_size_bytes_(object_size_bytes),
      ino_(view.ino),
      size_bytes_(view.size_bytes),
      map_(view.map),
      buffered_(joined(std::move(buffered))) {}

Result<DataMap> DataMap::of(DataIo& io, FileNode& node) {
  const auto object_size_bytes = io.instance.super().object_size_bytes;
  const auto leased = [&]() REQUIRES(node.mutex) {
    return DataMap(io.instance.store(), object_size_bytes, node.view, node.buffer->ranges({0, node.view.size_bytes}));
  };
  LCCFS_CHECK(node.settle_release());
  {
    const Lock lock(node.mutex);
    if (node.lease_held) return leased();
  }
  LCCFS_TRY(const auto read, or_stale(io.holders.read_current(node.ino, LeaseHolders::Ask::for_reading)));
  // Nobody asks a client without a record what it has open: the bytes may have gone with the file.
  if (!read.live() && !io.instance.recorded()) {
    return failure(ErrorCode::stale, format::inode_object(node.ino) + " was removed");
  }
  node.learn(read);
  const Lock lock(node.mutex);  // another thread may have taken the lease meanwhile: then memory knows better
  return node.lease_held ? leased() : DataMap(io.instance.store(), object_size_bytes, read);
}

std::uint64_t DataMap::next_buffered(std::uint64_t offset) const {
  const auto buffered = std::ranges::upper_bound(buffered_, offset, {}, &ByteRange::end);
  return buffered == buffered_.end() ? UINT64_MAX : std::max(offset, buffered->begin);
}

Result<std::optional<std::uint64_t>> DataMap::next_data(std::uint64_t offset) const {
  const auto buffered = next_buffered(offset);
  if (buffered == offset) return offset;
  LCCFS_TRY(const auto stored, next_stored_data(offset));
  const auto first = std::min(stored.value_or(UINT64_MAX), buffered);
  return first == UINT64_MAX ? std::nullopt : std::optional(first);
}

Result<std::uint64_t> DataMap::next_hole(std::uint64_t offset) const {
  while (true) {
    LCCFS_TRY(const auto hole, next_hole_in_store(offset));
    const auto buffered = std::ranges::upper_bound(buffered_, hole, {}, &ByteRange::end);
    if (buffered == buffered_.end() || buffered->begin > hole) return hole;
    offset = buffered->end;
  }
}

Result<std::optional<std::uint64_t>> DataMap::next_stored_data(std::uint64_t offset) const {
  for (std::size_t count = 1; offset < size_bytes_; count = std::min(2 * count, most_questions_in_flight)) {
    const auto objects = mapped_in({offset, size_bytes_}, count);
    if (objects.empty()) break;
    LCCFS_TRY(const auto data, ask(objects));
    if (!data.empty()) return data.front().begin;
    offset = objects.back().file_offset_bytes + objects.back().length_bytes;
  }
  return std::nullopt;
}

Result<std::uint64_t> DataMap::next_hole_in_store(std::uint64_t offset) const {
  for (std::size_t count = 1; offset < size_bytes_; count = std::min(2 * count, most_questions_in_flight)) {
    const auto objects = mapped_in({offset, size_bytes_}, count);
    if (objects.empty() || objects.front().file_offset_bytes > offset) return offset;
    const auto asked_to = objects.back().file_offset_bytes + objects.back().length_bytes;
    LCCFS_TRY(const auto data, ask(objects));
    for (const ByteRange& range : data) {
      if (range.begin > offset) return offset;
      offset = range.end;
    }
    if (offset < asked_to) return offset;
  }
  return size_bytes_;
}

Result<std::vector<ByteRange>> DataMap::data_in(ByteRange range) const {
  range.end = std::min(range.end, size_bytes_);
  std::vector<ByteRange> all;
  for (const ByteRange& buffered : buffered_) {
    const auto part = buffered.within(range);
    if (!part.is_empty()) all.push_back(part);
  }
  while (range.begin < range.end) {
    const auto objects = mapped_in(range, most_questions_in_flight);
    if (objects.empty()) break;
    LCCFS_TRY(const auto data, ask(objects));
    all.insert(all.end(), data.begin(), data.end());
    range.begin = objects.back().file_offset_bytes + objects.back().length_bytes;
  }
  return joined(std::move(all));
}

/// All at once.
Result<std::vector<ByteRange>> DataMap::ask(const std::vector<format::Extent>& objects) const {
  std::vector<Awaited<Result<std::vector<DataExtent>>>> answers;
  for (const auto& part : objects) {
    auto [answer, done] = promised<Result<std::vector<DataExtent>>>();
    answers.push_back(std::move(answer));
    store_.data_extents(format::data_object(ino_, part.index), part.object_offset_bytes, part.length_bytes,
                        std::move(done));
  }
  std::vector<ByteRange> data;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    LCCFS_TRY(const auto extents, answers[i].get());
    const auto object_begin = objects[i].file_offset_bytes - objects[i].object_offset_bytes;
    for (const DataExtent& extent : extents) {
      data.push_back({object_begin + extent.offset, object_begin + extent.offset + extent.size_bytes});
    }
  }
  return data;
}

}  // namespace lccfs
