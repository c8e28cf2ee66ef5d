// SPDX-License-Identifier: LGPL-2.1-or-later
// What tests and their child process (local_store_writer.cpp) agree on: each of its writers has a metadata object and
// a data object, and writes rising numbers, each into every part of them.
#pragma once

#include <string>

namespace lccfs::test {

inline constexpr unsigned writers = 4;
inline std::string writers_metadata(unsigned writer) { return "Inode." + std::to_string(100 + writer); }
inline std::string writers_data(unsigned writer) { return "Data." + std::to_string(100 + writer) + ".0"; }
/// All of one width.
inline std::string number_text(unsigned number) { return std::to_string(1'000'000 + number); }
inline constexpr const char* writers_session = "Session.100";

}  // namespace lccfs::test
