// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands.h"
#include "cli/top_looks.h"
#include "lccfs/clock.h"

namespace lccfs::cli {
namespace {

/// 0: standard output is no terminal.
std::size_t terminal_lines() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return std::max<std::size_t>(size.ws_row, 4);
}

struct Top {
  std::vector<std::string> wanted;
  std::chrono::nanoseconds interval{std::chrono::seconds(1)};
  bool once = false, json = false;
};

Result<int> run_top(const Top& given) {
  LCCFS_TRY(auto programs, find_running(given.wanted));
  TopLooks looks(std::move(programs), system_clock());
  const std::size_t lines = terminal_lines();
  const bool repaints = lines != 0 && !given.json && !given.once;
  do {
    system_clock().sleep_for(given.interval);
    const TopTable table = looks.look_again();
    if (looks.all_have_ended()) return failure(ErrorCode::not_found, "what was looked at has ended");
    if (given.json) {
      std::cout << json_text(top_as_json(table)) << "\n" << std::flush;
    } else {
      std::cout << (repaints ? "\x1b[H\x1b[2J" : "")
                << top_as_text(table, lines != 0 ? Colours::terminal : Colours::none, repaints ? lines - 1 : 0)
                << std::flush;
    }
  } while (!given.once && std::cout.good());
  return {};
}

}  // namespace

void add_top(options::CommandLine& program) {
  auto& line = program.add_command({.name = "top",
                                    .usage = "[MOUNTPOINT|PID|ADDRESS:PORT]... [OPTION]...",
                                    .summary = "Shows what mounts are doing, and the directories on top of them.",
                                    .footer = R"(Examples:
  lccfs top                                  all mounts of this host, every second, until Ctrl-C
  lccfs top /var/lib/nova/instances --once
  lccfs top 10.0.0.5:9475 --json             one of another host, by its metrics port

Rates are of the time between two looks; latencies are means. SLOW counts since the mount began.
A mount of this host is seen by its owner, and by root if it is root's.)"});
  auto& given = line.runs(run_top);
  line.group("What to look at");
  line.operand("MOUNT", options::text_list(given.wanted),
               "mountpoints, process ids, or addresses with their metrics port",
               options::CommandLine::Operand::repeated);
  line.group("Output");
  line.option("--interval", "SECONDS", options::seconds(given.interval), "between two looks (default: 1)");
  line.flag("--once", given.once, "one table, and end");
  line.flag("--json", given.json, "as JSON, for programs: one line for each look");
}

}  // namespace lccfs::cli
