// SPDX-License-Identifier: LGPL-2.1-or-later
// Data objects as sparse files, and the calls on one of them: no order and no threads here (data_queue.h has them).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lccfs/object_store.h"
#include "lccfs/result.h"
#include "store/local/descriptor.h"

namespace lccfs::local {

/// What is left to do until changes of an object are durable.
struct Unsynced {
  Descriptor file;         ///< empty: its bytes need no sync
  bool directory = false;  ///< its name has come or gone, or may have: an earlier change of it was cut short

  /// Takes over what a later change of the object has left. However many there are, one descriptor is kept.
  void add(Unsynced later);
};

class DataFiles {
 public:
  /// `data`: the directory; open for longer than this.
  explicit DataFiles(int data) : data_(data) {}

  /// `flags`: of preadv2(2). RWF_NOWAIT: io, unless the bytes can be had without waiting for a disk.
  Result<std::size_t> read(const std::string& object, std::uint64_t offset, std::span<char> target, int flags) const;
  Result<Unsynced> write(const std::string& object, const std::vector<DataPiece>& pieces) const;
  Result<Unsynced> truncate(const std::string& object, std::uint64_t size_bytes) const;
  Result<Unsynced> remove(const std::string& object) const;
  Result<Unsynced> zero(const std::string& object, std::uint64_t offset, std::uint64_t size_bytes) const;
  /// In place: what is cut short leaves old and new bytes.
  Result<Unsynced> copy(const std::string& source, const std::string& target) const;
  Result<std::vector<DataExtent>> extents(const std::string& object, std::uint64_t offset,
                                          std::uint64_t size_bytes) const;
  Result<> sync(const std::string& object, const Unsynced& changes) const;

  /// Names in one of the `fan_out` directories; the number of the first one from `directory` on that exists, or `end`,
  /// is put there. corrupt: a file that belongs into another one.
  static constexpr unsigned fan_out = 256;
  Result<std::vector<std::string>> names(unsigned& directory, unsigned end) const;

 private:
  Result<Unsynced> open_to_write(const std::string& object) const;

  const int data_;
};

}  // namespace lccfs::local
