// SPDX-License-Identifier: LGPL-2.1-or-later
// Records of which one byte has changed.
#include "repair/one_byte.h"

#include "format/records.h"
#include "support/catch.h"

namespace lccfs {
namespace {

using repair::with_one_byte_corrected;

bool is_entry(std::string_view bytes) { return format::decode<format::EntryRecord>(bytes).has_value(); }
bool is_block(std::string_view bytes) { return format::decode<format::MapBlock>(bytes).has_value(); }

const Bytes healthy = encode(format::EntryRecord{Ino{77}, FileType::symlink, {InstanceId{5}, 8}});

TEST_CASE("any one byte that became any other is corrected, in the checksum too") {
  for (std::size_t at = 0; at < healthy.size(); ++at) {
    for (int change = 1; change < 256; ++change) {
      Bytes damaged = healthy;
      damaged[at] = static_cast<char>(damaged[at] ^ static_cast<char>(change));
      if (with_one_byte_corrected(damaged, is_entry) != healthy) FAIL("byte " << at << ", change " << change);
    }
  }
}

TEST_CASE("the longest of the fixed records is corrected as well") {
  format::MapBlock block;
  for (std::size_t bit = 0; bit < 1000; bit += 7) block.may_exist.set(bit);
  const Bytes good = encode(block);
  for (const std::size_t at : {std::size_t{0}, std::size_t{100}, good.size() - 1}) {
    Bytes damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    CHECK(with_one_byte_corrected(damaged, is_block) == good);
  }
}

TEST_CASE("what is right already, or differs in more than a byte, or is no record at all, has no correction") {
  CHECK(with_one_byte_corrected(healthy, is_entry) == std::nullopt);
  Bytes two = healthy;
  two[3] = static_cast<char>(two[3] ^ 1);
  two[9] = static_cast<char>(two[9] ^ 1);
  CHECK(with_one_byte_corrected(two, is_entry) == std::nullopt);
  CHECK(with_one_byte_corrected(healthy.substr(0, healthy.size() - 1), is_entry) == std::nullopt);
  CHECK(with_one_byte_corrected(healthy + "x", is_entry) == std::nullopt);
  CHECK(with_one_byte_corrected("", is_entry) == std::nullopt);
  CHECK(with_one_byte_corrected("\1\2\3\4", is_entry) == std::nullopt);
}

TEST_CASE("a correction that is no record of its kind is none") {
  Bytes damaged = healthy;
  damaged[2] = 'x';
  CHECK(with_one_byte_corrected(damaged, is_block) == std::nullopt);
}

}  // namespace
}  // namespace lccfs
