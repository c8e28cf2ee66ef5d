// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Where a file has data, and where holes, as of one moment: an object that cannot exist is a hole, one that may is
// asked. What is buffered, as it cannot be stored or was written just now, is data. The caller is in the file's gate,
// and blocks.
#pragma once

#include <optional>
#include <vector>

#include "format/layout.h"
#include "fs/data_io.h"

namespace lccfs {

/// The first pieces of the range, which ends where the file does at the latest, that lie in objects which may exist. A
/// damaged map may have objects that no file reaches: where their bytes would begin does not fit in 64 bits.
std::vector<format::Extent> mapped_pieces(const AllocationMap& map, std::uint64_t object_size_bytes, ByteRange range,
                                          std::size_t at_most);

class DataMap {
 public:
  /// From memory under the lease; else the inode is read, and the holder of its lease stores its size first.
  static Result<DataMap> of(DataIo& io, FileNode& node);

  std::uint64_t size_bytes() const { return size_bytes_; }
  bool may_exist(ObjectIndex index) const { return map_.may_exist(index); }
  /// The first byte from there on that is buffered; UINT64_MAX: none is.
  std::uint64_t next_buffered(std::uint64_t offset) const;
  std::uint64_t units_there(ObjectIndex index) const { return map_.units_there(index); }
  /// Data at or after that offset. nullopt: there is none before the end.
  Result<std::optional<std::uint64_t>> next_data(std::uint64_t offset) const;
  /// The end of the file at the latest.
  Result<std::uint64_t> next_hole(std::uint64_t offset) const;
  /// The data among these bytes, in order.
  Result<std::vector<ByteRange>> data_in(ByteRange range) const;

 private:
  DataMap(ObjectStore& store, std::uint64_t object_size_bytes, const Inode& view, std::vector<ByteRange> buffered = {});

  Result<std::optional<std::uint64_t>> next_stored_data(std::uint64_t offset) const;
  Result<std::uint64_t> next_hole_in_store(std::uint64_t offset) const;
  std::vector<format::Extent> mapped_in(ByteRange range, std::size_t at_most) const {
    return mapped_pieces(map_, object_size_bytes_, range, at_most);
  }
  Result<std::vector<ByteRange>> ask(const std::vector<format::Extent>& objects) const;

  ObjectStore& store_;
  std::uint64_t object_size_bytes_;
  Ino ino_;
  std::uint64_t size_bytes_;
  AllocationMap map_;
  std::vector<ByteRange> buffered_;  // in order; no two touch
};

}  // namespace lccfs
