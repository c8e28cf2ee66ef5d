// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/text.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

namespace lccfs {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t length = 0;  ///< 0: no UTF-8
};

/// The first character of what is not empty.
Character decode(std::string_view bytes) {
  const auto byte = [bytes](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || bytes.size() < length) return {};
  char32_t code = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < least[length] || surrogate || code > 0x10ffff) return {};
  return {code, length};
}

/// How many bytes the first character has; 0: it is not to be shown.
std::size_t length_of_shown(std::string_view bytes) {
  const auto [code, length] = decode(bytes);
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool line_or_direction = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return control || line_or_direction ? 0 : length;
}

std::string escape(char character) {
  const auto byte = static_cast<unsigned char>(character);
  return {'\\', 'x', "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
}

/// An indent of -1: one line.
std::string ascii_of(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::string size_text(std::uint64_t size_bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(size_bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  const int decimals = unit == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << value << " " << units[unit];
  return text.str();
}

std::string count_text(std::uint64_t count) {
  constexpr std::size_t group = 3;
  std::string text = std::to_string(count);
  for (std::size_t from_end = group; from_end < text.size(); from_end += group + 1)
    text.insert(text.size() - from_end, 1, ',');
  return text;
}

void add_word(std::string& list, std::string_view word) {
  if (!list.empty()) list += ", ";
  list += word;
}

std::string printable(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t length = length_of_shown(bytes);
    text += length != 0 ? std::string(bytes.substr(0, length)) : escape(bytes.front());
    bytes.remove_prefix(std::max<std::size_t>(1, length));
  }
  return text;
}

std::string escaped(std::string_view bytes, std::string_view which) {
  std::string text;
  for (const char byte : bytes) text += which.contains(byte) ? escape(byte) : std::string(1, byte);
  return text;
}

std::string json_text(const nlohmann::ordered_json& json) { return ascii_of(json, -1); }

std::string json_page(const nlohmann::ordered_json& json) { return ascii_of(json, 2) + "\n"; }

}  // namespace lccfs
