// SPDX-License-Identifier: LGPL-2.1-or-later
#include "survey/base64.h"

#include <cstdint>

namespace lccfs::survey {

namespace {
constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr unsigned digit_bits = 6;
constexpr std::size_t group = 4;  // digits for three bytes
}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  std::uint32_t left = 0;
  unsigned left_bits = 0;
  for (const char byte : bytes) {
    left = left << 8 | static_cast<unsigned char>(byte);
    for (left_bits += 8; left_bits >= digit_bits;) {
      left_bits -= digit_bits;
      text += digits[left >> left_bits & 63];
    }
  }
  if (left_bits != 0) text += digits[left << (digit_bits - left_bits) & 63];
  while (text.size() % group != 0) text += '=';
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t left = 0;
  unsigned left_bits = 0;
  for (const char digit : text.substr(0, std::min(text.find('='), text.size()))) {
    const auto value = digits.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    left = left << digit_bits | static_cast<std::uint32_t>(value);
    left_bits += digit_bits;
    if (left_bits < 8) continue;
    left_bits -= 8;
    bytes += static_cast<char>(left >> left_bits & 0xff);
  }
  // Of what says the same in another way nothing is taken.
  return to_base64(bytes) == text ? std::optional(bytes) : std::nullopt;
}

}  // namespace lccfs::survey
