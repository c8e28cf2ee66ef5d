// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gc/command.h"

namespace lccfs::gc {
namespace {

constexpr std::uint64_t most_jobs = 1024;
constexpr std::uint64_t longest_grace_seconds = 1'000'000'000;

constexpr const char* footer = R"(Examples:
  lccfs-gc -c /etc/ceph/ceph.conf -p vms                  in the background, for the volume in the Ceph pool "vms"
  lccfs-gc --local /srv/volume -f --interval 10           in the foreground, a pass every ten seconds
  lccfs-gc -p vms -n nova --once                          all that can be done now, for cron
  lccfs-gc -p vms -n nova --once --grace 0 -j 64          the same at once, and fast
  lccfs-gc -p vms --dry-run                               what it would do, and which clients are gone

Exit status: 0 done, 1 failed, interrupted, damage met or a remove refused, 2 wrong usage.)";

}  // namespace

Result<Command> parse_command(const std::vector<std::string>& words) {
  Command command;
  bool once = false, dry_run = false;
  std::optional<std::chrono::nanoseconds> interval;
  options::CommandLine line({.name = "lccfs-gc",
                             .usage = "VOLUME [OPTION]...",
                             .summary = "Reclaims what was removed from an LCCFS volume, for as long as it runs.",
                             .footer = footer});
  options::add_address(line, command.address);
  line.group("Collector");
  line.flag("--once", once, "do all that can be done now, print a summary and end");
  line.flag("--dry-run", dry_run, "say what would be done and change nothing");
  line.flag("--json", command.json, "with --once or --dry-run: print JSON, for programs");
  line.option("-j,--jobs", "JOBS", options::number(command.jobs, 1, most_jobs),
              "store operations in flight (default: 16)");
  line.option("--rate", "OPS/S", options::number(command.operations_per_second, 0, UINT64_MAX),
              "at most so many changes of the store in a second\n(default: no limit)");
  line.option("--interval", "SECONDS", options::seconds(interval), "pause between two passes (default: 60)");
  line.exclude("--interval", {"--once", "--dry-run"});
  line.option("--grace", "SECONDS", options::number(command.grace, 0, longest_grace_seconds),
              "leave alone what is younger than this\n(default: the volume's grace period)");
  line.flag("-f,--foreground", command.foreground, "stay in the foreground, and log to standard error");
  line.configurable(options::CommandLine::Section::of_program, {"--jobs", "--rate", "--interval", "--grace"});
  line.check([&]() -> Result<> {
    const bool daemon = !once && !dry_run;
    if (command.json && daemon) return failure(ErrorCode::invalid, "--json goes with --once or --dry-run");
    if (command.monitor.port && !daemon)
      return failure(ErrorCode::invalid, "--metrics-port does not go with --once or --dry-run");
    command.what = dry_run ? Command::What::dry_run : once ? Command::What::once : Command::What::daemon;
    command.interval = interval.value_or(command.interval);
    command.foreground = command.foreground || !daemon;
    return {};
  });
  daemon::add_monitor_options(line, command.monitor, "2000; with --once 10000");
  daemon::add_log_options(line, command.log, command.foreground);
  LCCFS_TRY(command.answer, line.parse(words));
  return command;
}

}  // namespace lccfs::gc
