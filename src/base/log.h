// SPDX-License-Identifier: LGPL-2.1-or-later
// The log: lines for people, each naming the object it is about. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace lccfs::log {

enum class Level { debug, info, warning, error };

/// Where lines go from now on: standard error (default), a file, or syslog. Returns an error text, empty if none.
std::string to_file(const std::string& path);
void to_syslog(const std::string& ident);
void set_level(Level level);

void write(Level level, std::string_view line);
inline void debug(std::string_view line) { write(Level::debug, line); }
inline void info(std::string_view line) { write(Level::info, line); }
inline void warning(std::string_view line) { write(Level::warning, line); }
inline void error(std::string_view line) { write(Level::error, line); }

}  // namespace lccfs::log
