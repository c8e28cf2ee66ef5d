// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/commands.h"
#include "cli/running.h"

namespace lccfs::cli {
namespace {

struct LogLevel {
  std::string level;
  std::vector<std::string> wanted;
};

Result<int> run_log_level(const LogLevel& given) {
  LCCFS_TRY(const auto programs, find_running(given.wanted));
  Result<int> all;
  for (const RunningProgram& program : programs) {
    auto changed = metrics::http_ask(program.place, "PUT", "/log-level", given.level);
    if (!changed && all) all = std::unexpected(std::move(changed).error());
  }
  return all;
}

}  // namespace

void add_log_level(options::CommandLine& program) {
  auto& line = program.add_command({.name = "log",
                                    .usage = "LEVEL [MOUNTPOINT|PID]...",
                                    .summary = "Changes what running mounts and collectors log.",
                                    .footer = R"(Examples:
  lccfs log debug /mnt                       of the mount on /mnt
  lccfs log info                             of all mounts and collectors of this host
  lccfs log debug $(pidof lccfs-gc)

It holds until the program ends.)"});
  auto& given = line.runs(run_log_level);
  line.group("What to change");
  line.operand(
      "LEVEL",
      options::choice(given.level, {{"debug", "debug"}, {"info", "info"}, {"warning", "warning"}, {"error", "error"}}),
      "debug, info, warning or error");
  line.operand("MOUNT", options::text_list(given.wanted), "mountpoints and process ids (default: all of this host)",
               options::CommandLine::Operand::repeated);
  line.check([&given]() -> Result<> {
    if (!given.level.empty()) return {};
    return failure(ErrorCode::invalid, "which level? debug, info, warning or error");
  });
}

}  // namespace lccfs::cli
