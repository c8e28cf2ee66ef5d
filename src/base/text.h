// SPDX-License-Identifier: LGPL-2.1-or-later
// Values as lines for people have them. Pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace lccfs {

/// To three digits, in powers of 1024: "4.00 MiB", "119 GiB".
std::string size_text(std::uint64_t size_bytes);

/// With commas: "1,234,567".
std::string count_text(std::uint64_t count);

/// Text as others wrote it, without what would move a terminal's cursor.
std::string printable(const std::string& text);

}  // namespace lccfs
