// SPDX-License-Identifier: LGPL-2.1-or-later
// What every program does first and last, and how it complains.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lccfs {

/// What a program is called, and the statuses that it exits with.
struct Program {
  const char* name = "lccfs";
  int failed = 1;
  int usage = 2;
  int output_lost = 1;
  int system_error = 1;
  int internal_error = 1;
  int interrupted = 1;
};

/// A program's main(): runs `run` with the words after the program's name, and answers the status to exit with.
///
/// Descriptors 0 to 2 that the caller has closed are opened before anything else: else the first files of the program
/// (the volume, the log, the pipe to its parent) would get these numbers, and what is printed would go into them.
/// The limit of open files is raised as far as it may be, but not beyond 524,288.
/// Output that could not be written is no success: that is said, and `output_lost` is added to the status.
int run_program(int argc, char** argv, const Program& program, int (*run)(const std::vector<std::string>&));

/// One line on standard error, whatever bytes it holds.
void print_error(std::string_view program, std::string_view line);
/// The same of this program, for `return`: answers the status.
int complain(const Program& program, std::string_view line, int status);

/// The same line of these parts, also into the log, and the end of the process with its status of failure. For handlers
/// of signals; the parts are shown as they are.
[[noreturn]] void end_by_damage(std::initializer_list<const char*> parts);

}  // namespace lccfs
