// SPDX-License-Identifier: LGPL-2.1-or-later
// The table of features.
#include "format/features.h"

#include <bit>
#include <set>

#include "support/catch.h"

using namespace lccfs;
using namespace lccfs::format;

TEST_CASE("each feature has one bit and one name of its own, and is known since a version that is a number") {
  std::set<std::string> names;
  for (const auto& one : all_features) {
    CHECK(std::has_single_bit(one.bit));
    CHECK(names.insert(one.name).second);
    CHECK(knows(one.since, one));
    for (const auto& other : all_features) {
      CHECK((one.name == std::string(other.name) || one.mask != other.mask || one.bit != other.bit));
    }
  }
}

TEST_CASE("a program knows a feature from its version on, number by number") {
  const Feature feature{"some", &SuperRecord::incompat, 1, "0.10.0"};
  for (const char* version : {"0.10.0", "0.10.1", "0.10.0.1", "0.11", "1.0", "1"}) CHECK(knows(version, feature));
  for (const char* version : {"0.9.9", "0.2.0", "0.10", "0"}) CHECK_FALSE(knows(version, feature));
}

TEST_CASE("a program whose version is no number knows no feature") {
  const Feature feature{"some", &SuperRecord::incompat, 1, "0"};
  for (const char* version :
       {"", "unknown", "9.9-rc1", "9..9", ".9", "9.", " 9", "9 ", "-1", "+9", "0x9", "99999999999999999999999"}) {
    INFO(version);
    CHECK_FALSE(knows(version, feature));
  }
}

TEST_CASE("bits are named, and those without a name are told as a number") {
  CHECK(feature_names(&SuperRecord::incompat, 0).empty());
  CHECK(feature_names(&SuperRecord::incompat, feature::space_units) == "space_units");
  CHECK(feature_names(&SuperRecord::incompat, feature::space_units | 0x1000) == "space_units, 0x1000");
  CHECK(feature_names(&SuperRecord::compat, std::uint64_t{1} << 63) == "0x8000000000000000");
}

TEST_CASE("a volume with all features misses none, and setting them touches no other bit") {
  SuperRecord super;
  super.incompat = std::uint64_t{1} << 40;
  CHECK(missing_features(super).size() == all_features.size());
  CHECK_FALSE(super.has(feature::space_units));
  set_features(super, missing_features(super));
  CHECK(missing_features(super).empty());
  CHECK(super.has(feature::space_units));
  CHECK(super.incompat == (known_bits(&SuperRecord::incompat) | std::uint64_t{1} << 40));
}
