// SPDX-License-Identifier: LGPL-2.1-or-later
#include "format/features.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "base/text.h"

namespace lccfs::format {

namespace {

std::string hexadecimal(std::uint64_t bits) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), bits, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

/// nullopt: not decimal numbers with dots between them.
std::optional<std::vector<std::uint64_t>> parse_version(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    std::uint64_t number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) return std::nullopt;
    numbers.push_back(number);
    if (rest == end) return numbers;
    if (*rest != '.') return std::nullopt;
    at = rest + 1;
  }
}

}  // namespace

std::uint64_t known_bits(FeatureMask mask) {
  std::uint64_t bits = 0;
  for (const auto& feature : all_features) {
    if (feature.mask == mask) bits |= feature.bit;
  }
  return bits;
}

std::vector<Feature> missing_features(const SuperRecord& super) {
  std::vector<Feature> missing;
  for (const auto& feature : all_features) {
    if (!feature.is_in(super)) missing.push_back(feature);
  }
  return missing;
}

void set_features(SuperRecord& super, const std::vector<Feature>& features) {
  for (const auto& feature : features) super.*feature.mask |= feature.bit;
}

std::string feature_names(FeatureMask mask, std::uint64_t bits) {
  std::vector<Feature> named;
  std::ranges::copy_if(all_features, std::back_inserter(named), [mask, bits](const Feature& feature) {
    return feature.mask == mask && (bits & feature.bit) != 0;
  });
  auto names = names_of(named);
  const std::uint64_t nameless = bits & ~known_bits(mask);
  if (nameless != 0) add_word(names, hexadecimal(nameless));
  return names;
}

std::string names_of(const std::vector<Feature>& features) {
  std::string names;
  for (const auto& feature : features) add_word(names, feature.name);
  return names;
}

Result<> check_features_of_repair(const SuperRecord& super) {
  const std::uint64_t unknown = super.compat & ~known_bits(&SuperRecord::compat);
  if (unknown == 0) return {};
  return failure(ErrorCode::unsupported,
                 "the volume has features that this version does not know, and a repair would remove what is there of "
                 "them (compat " +
                     feature_names(&SuperRecord::compat, unknown) + "): use a newer one");
}

bool knows(std::string_view program_version, const Feature& feature) {
  const auto version = parse_version(program_version);
  return version && *version >= *parse_version(feature.since);
}

}  // namespace lccfs::format
