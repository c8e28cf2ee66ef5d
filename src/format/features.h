// SPDX-License-Identifier: LGPL-2.1-or-later
// The table of features: what has changed on the store since the first volumes, each change with its bit in Super
// (docs/FORMAT.md section 5). New volumes have all of them, `lccfs upgrade` sets those that a volume has not, and a
// program refuses a volume with one that is not in its table. Pure functions; any thread.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "format/records.h"

namespace lccfs::format {

/// One of SuperRecord's three sets of bits.
using FeatureMask = std::uint64_t SuperRecord::*;

struct Feature {
  const char* name;
  FeatureMask mask;
  std::uint64_t bit;
  const char* since;  ///< the version of the program that was the first to know it
  bool is_in(const SuperRecord& super) const { return (super.*mask & bit) != 0; }
};

inline constexpr std::array all_features{
    Feature{"space_units", &SuperRecord::incompat, feature::space_units, "0.2.0"},
    Feature{"moves", &SuperRecord::incompat, feature::moves, "0.3.0"},
    Feature{"acls", &SuperRecord::incompat, feature::acls, "0.3.0"},
    Feature{"locks", &SuperRecord::incompat, feature::locks, "0.3.0"},
    Feature{"openers", &SuperRecord::incompat, feature::openers, "0.4.0"},
    Feature{"directory_leases", &SuperRecord::incompat, feature::directory_leases, "0.4.0"},
    Feature{"names_behind", &SuperRecord::incompat, feature::names_behind, "0.5.0"},
};

/// In SuperRecord::incompat, and in no volume that is used: `lccfs load` has not ended. No feature: only check_features
/// and load know it (src/survey/load.cpp).
inline constexpr std::uint64_t being_loaded = std::uint64_t{1} << 63;

std::uint64_t known_bits(FeatureMask mask);
/// Those of the table that the volume has not.
std::vector<Feature> missing_features(const SuperRecord& super);
void set_features(SuperRecord& super, const std::vector<Feature>& features);

/// Of these bits of the mask; last, in hexadecimal, those without a name: "space_units, 0x12". Empty: no bits.
std::string feature_names(FeatureMask mask, std::uint64_t bits);
/// "space_units, ...": of these features.
std::string names_of(const std::vector<Feature>& features);

/// unsupported: this version does not know a compat feature of the volume. Others may ignore what that has put there; a
/// repair would take it for foreign, and remove it.
Result<> check_features_of_repair(const SuperRecord& super);

/// Whether a program of that version (InstanceRecord) knows the feature. What is not dotted numbers knows none.
bool knows(std::string_view program_version, const Feature& feature);

}  // namespace lccfs::format
