// SPDX-License-Identifier: LGPL-2.1-or-later
// The lines of a dump: the metadata of a volume as JSON, an object a line (docs/FORMAT.md section 6). Each ends with the
// CRC-32C of itself and of all lines before it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "objects/allocation_map.h"
#include "txn/load_txn.h"

namespace lccfs::survey {

inline constexpr std::uint64_t dump_version = 1;

struct DumpHeader {
  std::string uuid, label;
  std::uint32_t object_size_bytes = 0;
  std::uint64_t next_number = 0;  ///< no inode has a number from this one on
  TimeSpec time;                  ///< when it was begun
};
struct DumpedEntries {
  Ino directory;
  std::vector<txn::LoadedName> names;
};
struct DumpEnd {
  std::uint64_t inodes = 0;
  std::uint64_t left_out = 0;  ///< what could not be read
};
using DumpLine = std::variant<DumpHeader, txn::LoadedInode, DumpedEntries, DumpEnd>;

/// Whether a dump can have an extended attribute of that name and value.
bool may_be_attribute(std::string_view name, std::string_view value);

/// One dump, line by line. One thread.
class DumpWriter {
 public:
  /// With its line end.
  std::string line(const DumpLine& line);

 private:
  std::uint32_t checksum_ = 0;  // of the lines before
};

class DumpReader {
 public:
  /// The next line, without its end. invalid: why it is no line of a dump, or not in that place.
  Result<DumpLine> read(std::string_view line);

 private:
  std::uint32_t checksum_ = 0;
  std::uint32_t object_size_bytes_ = format::object_size_min_bytes;  // of the first line
};

}  // namespace lccfs::survey
