// SPDX-License-Identifier: LGPL-2.1-or-later
//
// SEEK_DATA and SEEK_HOLE. Nothing is changed.
//
//  seek | object   | step                                                       | stop here leaves
//  1    | Data.X.* | write out what is buffered (write_buffer.cpp); what cannot | the same as a write
//       |          | be stored is data, too                                     |
//  2    | Inode.X  | read size and map, unless the lease is ours; another holds | nothing
//       |          | it: it stores its size first                               |
//  3    | Data.X.* | those that may exist: which bytes are there                | nothing
#include "fs/data_map.h"
#include "fs/files.h"

namespace lccfs {

Result<std::uint64_t> Files::seek(HandleId id, std::uint64_t offset, SeekTo what) {
  const auto handle = open_files_.handle(id);
  if (!handle) return failure(ErrorCode::bad_handle, "not an open file");
  LCCFS_CHECK(instance_.check_not_fenced());
  FileNode& node = *handle->node;
  const ReadInGate reading(node.gate);
  const auto stored = node.write_out();  // what cannot be written is data, too
  if (!stored && stored.error().code == ErrorCode::fenced) return std::unexpected(stored.error());
  LCCFS_TRY(const auto map, DataMap::of(io_, node));
  const auto nothing = [&] { return failure(ErrorCode::no_such_offset, format::inode_object(node.ino)); };
  if (offset >= map.size_bytes()) return nothing();
  if (what == SeekTo::hole) return map.next_hole(offset);
  LCCFS_TRY(const auto data, map.next_data(offset));
  if (!data) return nothing();
  return *data;
}

}  // namespace lccfs
