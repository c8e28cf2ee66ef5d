// SPDX-License-Identifier: LGPL-2.1-or-later
// What a metadata object holds besides its omap, as one value in the objects table (little-endian, strings led by a
// 32-bit length):
//
//   version u64 | payload string | number of xattrs u32 | { name string | value string } in order of the names
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lccfs/types.h"

namespace lccfs::local {

struct ObjectHead {
  std::uint64_t version = 0;
  Bytes payload;
  std::map<std::string, Bytes> xattrs;
};

Bytes encode(const ObjectHead& head);
/// nullopt: not what encode makes.
std::optional<ObjectHead> decode_head(std::string_view bytes);

/// Numbers as they stand in the tables: 8 bytes, little-endian.
Bytes encode_number(std::uint64_t number);
std::optional<std::uint64_t> decode_number(std::string_view bytes);

}  // namespace lccfs::local
