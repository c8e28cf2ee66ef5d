// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/process_stat.h"

#include <fstream>
#include <iterator>
#include <sstream>

namespace lccfs {

std::optional<ProcessStat> process_stat_in(std::string_view line) {
  // Field 2, the command in parentheses, may hold anything; the state is field 3.
  const auto end_of_command = line.rfind(')');
  if (end_of_command == std::string_view::npos) return std::nullopt;
  std::istringstream fields{std::string(line.substr(end_of_command + 1))};
  ProcessStat stat;
  std::string skipped;
  const auto skip = [&](int first, int last) {
    for (int field = first; field <= last; ++field) fields >> skipped;
  };
  fields >> stat.state;
  skip(4, 8);
  fields >> stat.flags;
  skip(10, 19);
  fields >> stat.threads >> skipped >> stat.start_ticks;
  return fields ? std::optional(stat) : std::nullopt;
}

std::optional<ProcessStat> read_process_stat(const std::string& process) {
  std::ifstream file("/proc/" + process + "/stat");
  return process_stat_in(std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace lccfs
