// SPDX-License-Identifier: LGPL-2.1-or-later
// The log: lines for people, each naming the object it is about. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "lccfs/result.h"

namespace lccfs::log {

enum class Level { debug, info, warning, error };

/// Where lines go from now on: standard error (default), a file, or syslog. Returns an error text, empty if none.
/// The file is made, for its owner alone, if it is not there; its folder is not, and a symbolic link is refused.
std::string to_file(const std::string& path);
/// The file of that name anew, if lines go to a file: somebody has renamed the old one. Any thread. If it cannot be
/// opened, lines continue into the old one, the first of them about that. With write_behind() its thread does it, later:
/// who asks does not wait for the disk.
void reopen();
void to_syslog(const std::string& ident);
/// A thread writes the lines from now on, wherever they go: who has a line never waits for the disk or for syslog, which
/// may themselves wait for this program. What comes too fast is dropped and counted. After the last fork.
void write_behind();
/// Waits until all lines are written, for some seconds at most: at the end of the program.
void flush();
void set_level(Level level);

/// Whatever bytes the line holds, it stays one line: text.h, printable.
void write(Level level, std::string_view line);
inline void debug(std::string_view line) { write(Level::debug, line); }
inline void info(std::string_view line) { write(Level::info, line); }
inline void warning(std::string_view line) { write(Level::warning, line); }
inline void error(std::string_view line) { write(Level::error, line); }
/// "what: why". Nothing where that is the fence of this client, of which all that it does fails: one line tells of it
/// (Steps::become_fenced).
void failed(Level level, const std::string& what, const Error& why);

/// For handlers of signals: takes no lock and no memory. The line ends with a newline, and goes to a file or to syslog
/// as it is; not to standard error.
void write_in_a_handler(std::string_view line) noexcept;

}  // namespace lccfs::log
