// SPDX-License-Identifier: LGPL-2.1-or-later
//
// fallocate: room past the end, holes, zeros. Many objects are changed in parts, each alone in the gate: other requests
// run between the parts.
//
//  punch, zero | object   | step                                                   | stop here leaves
//  0           | Data.X.* | write out what is buffered (write_buffer.cpp)          | the same as a write
//  1           | Inode.X  | the lease (lease.cpp), privileges (data_privileges.cpp)| my lease, no setuid bit
//  2           | Data.X.* | below the size: remove whole objects that may exist,   | old bytes or zeros, as on a
//              |          | zero parts of others                                   | disk
//  3           | Inode.X  | [store size, times, map] if 2 left out an object: a    | the same
//              |          | holder that was evicted learns of it                   |
//  -           | memory   | "believed there" bits and times, stored later          | bits of objects that are gone
//  4           | Inode.X  | zero without KEEP_SIZE: grow (truncate.cpp)            | done
//
//  room        | object   | step                                                   | stop here leaves
//  0           | Inode.X  | the lease, privileges; zeros of a file whose lease is  | my lease, no setuid bit
//              |          | here, below its size, need no room: they begin at once |
//  1           | -        | if some of it lies past the end: the store tells how   | the same
//              |          | much room there is (space_looks.cpp)                   |
//  2           | Inode.X  | without KEEP_SIZE: grow (truncate.cpp)                 | done
#include <fcntl.h>

#include <algorithm>

#include "base/completions.h"
#include "format/layout.h"
#include "format/object_names.h"
#include "fs/checks.h"
#include "fs/data_map.h"
#include "fs/files.h"

namespace lccfs {

namespace {

constexpr std::uint64_t most_objects_at_once = 1024;

/// What a mode asks for.
struct Wanted {
  bool room = false;  ///< there must be some for what lies past the end
  bool zeros = false;
  bool growth = false;
};

Result<Wanted> wanted_by(int mode) {
  switch (mode) {
    case 0:
      return Wanted{.room = true, .growth = true};
    case FALLOC_FL_KEEP_SIZE:
      return Wanted{.room = true};
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
      return Wanted{.zeros = true};
    case FALLOC_FL_ZERO_RANGE:
      return Wanted{.room = true, .zeros = true, .growth = true};
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
      return Wanted{.room = true, .zeros = true};
    default:
      return failure(ErrorCode::unsupported, "fallocate with mode " + std::to_string(mode));
  }
}

}  // namespace

// ---- what a file does

Result<bool> FileNode::zero_range(ByteRange range) {
  buffer->drop(range);
  const auto object_size = instance_.super().object_size_bytes;
  std::vector<format::Extent> mapped;
  std::uint64_t size_bytes = 0;
  {
    const Lock lock(mutex);
    size_bytes = view.size_bytes;
    mapped = mapped_pieces(view.map, object_size, {range.begin, std::min(range.end, size_bytes)}, SIZE_MAX);
  }
  std::uint64_t left_out_bytes = range.end - range.begin;
  StepsInFlight steps;
  std::vector<ObjectIndex> removed;
  std::vector<format::Extent> zeroed;
  for (const auto& part : mapped) {
    left_out_bytes -= part.length_bytes;
    const auto object = format::data_object(ino, part.index);
    const auto bytes_of_file = format::bytes_within(object_size, part.index, size_bytes);
    if (part.length_bytes == bytes_of_file) {
      instance_.store().remove_data(object, steps.next());
      removed.push_back(part.index);
    } else {
      instance_.store().zero_data(object, part.object_offset_bytes, part.length_bytes, steps.next());
      auto& gone = zeroed.emplace_back(part);
      // Past the end is nothing: the unit in which the file ends goes as a whole.
      if (gone.object_offset_bytes + gone.length_bytes == bytes_of_file)
        gone.length_bytes = object_size - gone.object_offset_bytes;
    }
  }
  LCCFS_CHECK(steps.wait());
  const Lock lock(mutex);
  for (const auto index : removed) set_units_there(index, 0);
  for (const auto& part : zeroed) note_gone(part);
  return left_out_bytes == 0;
}

Result<> FileNode::confirm_lease() {
  const Lock one_step(step_mutex);
  {
    const Lock lock(mutex);
    stored_size_bytes.reset();
  }
  return store_dirty_now(true);
}

Result<> DataIo::change_alone(FileNode& node, const Caller& caller, ByteRange changed,
                              const std::function<Result<>()>& work) {
  const auto alone = [&]() -> Result<> {
    const AloneInGate alone_now(node.gate);
    static_cast<void>(node.write_out());  // what cannot be written stays buffered, and its error is told
    {
      const Lock one_step(node.step_mutex);
      LCCFS_CHECK(node.ensure());
      LCCFS_CHECK(node.clean_tail());
    }
    LCCFS_CHECK(clear_privileges(node, caller));
    return work();
  };
  auto result = alone();
  if (!result) drop_pages(node, changed);
  announcements.changed(node);
  return result;
}

void DataIo::drop_pages(const FileNode& node, ByteRange range) {
  auto [dropped, done] = promised<bool>();
  kernel.drop_written_pages(node.ino, range.begin, range.end - range.begin,
                            [done = std::move(done)]() mutable { done(true); });
  dropped.get();
}

// ---- what a call does

namespace {

std::uint64_t past_the_end(FileNode& node, ByteRange range) {
  const Lock lock(node.mutex);
  return range.end - std::min(range.end, std::max(range.begin, node.view.size_bytes));
}

bool lies_below_the_end(FileNode& node, ByteRange range) {
  const Lock lock(node.mutex);
  return node.lease_held && range.end <= node.view.size_bytes;
}

/// Up to where `most_objects_at_once` objects may exist. What cannot exist costs nothing, however much it is.
ByteRange first_part(FileNode& node, ByteRange range, std::uint64_t object_size_bytes) {
  const Lock lock(node.mutex);
  const ByteRange below_the_end{range.begin, std::min(range.end, node.view.size_bytes)};
  const auto mapped = mapped_pieces(node.view.map, object_size_bytes, below_the_end, most_objects_at_once);
  if (mapped.size() < most_objects_at_once) return range;
  return {range.begin, mapped.back().file_offset_bytes + mapped.back().length_bytes};
}

/// `grows`: once they are zeros, the file ends at their end or later. Where a part fails, the kernel keeps the pages of
/// those before it, too: all are dropped.
Result<> zero_in_parts(DataIo& io, FileNode& node, const Caller& caller, ByteRange range, bool grows) {
  auto rest = range;
  bool is_complete = true;
  const auto zero_part = [&]() -> Result<> {
    const auto part = first_part(node, rest, io.instance.super().object_size_bytes);
    LCCFS_TRY(const bool is_part_complete, node.zero_range(part));
    {
      const Lock lock(node.mutex);
      node.note_change_of_bytes();
    }
    is_complete = is_complete && is_part_complete;
    rest.begin = part.end;
    if (!rest.is_empty()) return {};
    // Once: who was evicted stays so, and a lease that was given back since, by a step, was ours until then.
    if (!is_complete) LCCFS_CHECK(node.confirm_lease());
    return grows ? node.grow(range.end) : Result<>{};
  };
  while (!rest.is_empty()) LCCFS_CHECK(io.change_alone(node, caller, range, zero_part));
  return {};
}

}  // namespace

Result<> Files::fallocate(const Caller& caller, HandleId id, int mode, std::uint64_t offset, std::uint64_t size_bytes) {
  const auto handle = open_files_.handle(id);
  if (!handle || !for_writing(handle->flags)) return failure(ErrorCode::bad_handle, "not open for writing");
  LCCFS_CHECK(instance_.check_not_fenced());
  LCCFS_TRY(const auto wanted, wanted_by(mode));
  if (size_bytes == 0) return failure(ErrorCode::invalid, "fallocate of no bytes");
  LCCFS_CHECK(check_bytes(offset, size_bytes));
  FileNode& node = *handle->node;
  const ByteRange range{offset, offset + size_bytes};
  if (wanted.room && !(wanted.zeros && lies_below_the_end(node, range))) {
    LCCFS_TRY(const bool is_longer, find_room(node, caller, range));
    if (is_longer && wanted.growth && !wanted.zeros) {
      return io_.change_alone(node, caller, range, [&] { return node.grow(range.end); });
    }
  }
  return wanted.zeros ? zero_in_parts(io_, node, caller, range, wanted.growth) : Result<>{};
}

/// Nothing is reserved: what is there now counts. Whether some of it lies past the end. The store is asked while others
/// change the file.
Result<bool> Files::find_room(FileNode& node, const Caller& caller, ByteRange range) {
  std::uint64_t missing_bytes = 0;
  LCCFS_CHECK(io_.change_alone(node, caller, range, [&]() -> Result<> {
    missing_bytes = past_the_end(node, range);
    return {};
  }));
  if (missing_bytes == 0) return false;
  LCCFS_TRY(const bool has_free, space_looks_.has_free(missing_bytes));
  if (has_free) return true;
  return failure(ErrorCode::no_space, format::inode_object(node.ino) + ": more than there is");
}

}  // namespace lccfs
