// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/commands.h"
#include "cli/running.h"

namespace lccfs::cli {

LogLevel::LogLevel(options::CommandLine& program) {
  auto& line = program.add_command({.name = "log",
                                    .usage = "LEVEL [MOUNTPOINT|PID]...",
                                    .summary = "Changes what running mounts and collectors log.",
                                    .footer = R"(Examples:
  lccfs log debug /mnt                       of the mount on /mnt
  lccfs log info                             of all mounts and collectors of this host
  lccfs log debug $(pidof lccfs-gc)

It holds until the program ends.)"});
  const std::vector<std::string> levels = {"debug", "info", "warning", "error"};
  std::vector<std::pair<std::string, std::string>> choices;
  choices.reserve(levels.size());
  for (const std::string& level : levels) choices.emplace_back(level, level);
  line.group("What to change");
  line.operand("LEVEL", options::choice(level_, std::move(choices)), "debug, info, warning or error");
  line.operand("MOUNT", options::text_list(wanted_), "mountpoints and process ids (default: all of this host)",
               options::CommandLine::Operand::repeated);
  line.check([this]() -> Result<> {
    if (!level_.empty()) return {};
    return failure(ErrorCode::invalid, "which level? debug, info, warning or error");
  });
}

Result<> LogLevel::run() const {
  LCCFS_TRY(const auto programs, find_running(wanted_));
  Result<> all;
  for (const RunningProgram& program : programs) {
    auto changed = metrics::http_ask(program.place, "PUT", "/log-level", level_);
    if (!changed && all) all = std::unexpected(std::move(changed).error());
  }
  return all;
}

}  // namespace lccfs::cli
