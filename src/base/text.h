// SPDX-License-Identifier: LGPL-2.1-or-later
// Values as lines for people have them. Pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lccfs {

/// To three digits, in powers of 1024: "4.00 MiB", "119 GiB".
std::string size_text(std::uint64_t size_bytes);

/// With commas: "1,234,567".
std::string count_text(std::uint64_t count);

/// One word more in a list: "a, b".
void add_word(std::string& list, std::string_view word);

/// Bytes as others wrote them, as one line for terminals and logs: UTF-8 stays, but for what would break a line or
/// steer a terminal (control characters, DEL, C1, line separators, changes of the writing direction); that, and every
/// byte that is no UTF-8, is \xNN. What it makes it leaves alone: everything that leaves a program may go through it
/// once more.
std::string printable(std::string_view bytes);

/// In the same form, these bytes alone; with the backslash among them, two texts stay two.
std::string escaped(std::string_view bytes, std::string_view which);

/// One line, without its end. For terminals too, so in ASCII: JSON itself lets DEL and C1 through. Bytes that are no
/// UTF-8 are replaced.
std::string json_text(const nlohmann::ordered_json& json);
/// The same, as a page of indented lines: what a program prints.
std::string json_page(const nlohmann::ordered_json& json);

}  // namespace lccfs
