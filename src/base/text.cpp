// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/text.h"

#include <array>
#include <iomanip>
#include <sstream>

namespace lccfs {

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

std::string printable(const std::string& text) {
  std::string result = text;
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return result;
}

}  // namespace lccfs
