// SPDX-License-Identifier: LGPL-2.1-or-later
#include <charconv>
#include <limits>

#include "options/command_line.h"

// By hand, for CLI11's own are lenient: 010 would be 8, -1 a large number, and 4M, 4m, 4MB and "4 MiB" the same.
namespace lccfs::options {
namespace {

Result<std::uint64_t> whole_number(std::string_view digits, const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size())
    return failure(ErrorCode::invalid, "'" + text + "' is not a number, or too big");
  return number;
}

}  // namespace

Result<std::uint64_t> parse_size(const std::string& text) {
  constexpr std::string_view suffixes = "KMGT";
  const std::size_t suffix = text.empty() ? std::string_view::npos : suffixes.find(text.back());
  const bool plain = suffix == std::string_view::npos;
  LCCFS_TRY(const std::uint64_t number,
            whole_number(std::string_view(text).substr(0, text.size() - (plain ? 0 : 1)), text));
  const unsigned shift = plain ? 0 : static_cast<unsigned>(suffix + 1) * 10;
  if (number > std::numeric_limits<std::uint64_t>::max() >> shift)
    return failure(ErrorCode::invalid, "'" + text + "' is too big");
  return number << shift;
}

Result<std::uint64_t> parse_number(const std::string& text) { return whole_number(text, text); }

Result<std::uint64_t> parse_number(const std::string& text, std::uint64_t least, std::uint64_t most) {
  LCCFS_TRY(const std::uint64_t number, parse_number(text));
  if (number >= least && number <= most) return number;
  return failure(ErrorCode::invalid, text + " is not from " + std::to_string(least) + " to " + std::to_string(most));
}

Result<std::chrono::nanoseconds> parse_seconds(const std::string& text) {
  constexpr std::size_t decimals = 9;
  constexpr std::uint64_t most_seconds = 1'000'000'000;
  const std::size_t point = text.find('.');
  const bool whole = point == std::string::npos;
  LCCFS_TRY(const std::uint64_t seconds, whole_number(std::string_view(text).substr(0, point), text));
  std::string fraction = whole ? "0" : text.substr(point + 1);
  if (fraction.empty() || fraction.size() > decimals || seconds > most_seconds)
    return failure(ErrorCode::invalid, "'" + text + "' is not a number of seconds");
  fraction.resize(decimals, '0');
  LCCFS_TRY(const std::uint64_t nanoseconds, whole_number(fraction, text));
  return std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanoseconds);
}

}  // namespace lccfs::options
