// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs-gc: reclaims what was removed from a volume.
#include <iostream>

#include "base/log.h"
#include "base/program.h"
#include "daemon/background.h"
#include "daemon/end_signals.h"
#include "gc/command.h"
#include "gc/daemon.h"
#include "gc/report.h"

namespace lccfs::gc {
namespace {

constexpr int exit_success = 0;
constexpr int exit_failure = 1;
constexpr int exit_usage = 2;

constexpr daemon::Program program{
    .name = "lccfs-gc", .system_error = exit_failure, .internal_error = exit_failure, .interrupted = exit_failure};

int complain(const std::string& line, int status) {
  print_error(program.name, line);
  return status;
}

int complain_of(const Error& error, const VolumeAddress& address) {
  const bool missing = error.code == ErrorCode::not_found;
  return complain((missing ? address.describe() + ": " : "") + error.context, exit_failure);
}

WorkerOptions worker_options(const Command& command) {
  return {.jobs = command.jobs, .operations_per_second = command.operations_per_second, .grace = command.grace};
}

/// What was left for later is no failure; what only lccfs-fsck can deal with is one.
int print_report(const Command& command, const reclaim::PassReport& report) {
  const bool dry = command.what == Command::What::dry_run;
  std::cout << (command.json ? report_as_json(report)
                : dry        ? dry_run_text(report)
                             : report_line(report) + "\n")
            << std::flush;
  for (const std::string& line : warnings_of(report)) complain(line, exit_success);
  return report.damaged.empty() ? exit_success : exit_failure;
}

int look(const Command& command) {
  StoreOptions brief;
  brief.step_timeout = std::chrono::seconds(30);  // it changes nothing, and somebody waits for it
  const auto store = open_store(command.address, brief);
  if (!store) return complain(store.error().context, exit_failure);
  const auto report = look_once(**store, system_clock(), worker_options(command));
  return report ? print_report(command, *report) : complain_of(report.error(), command.address);
}

int collect(const Command& command) {
  daemon::EndSignals signals(program, daemon::EndSignals::Hangup::ends);
  std::shared_ptr<ObjectStore> store;
  if (auto opened = open_store(command.address, {}); opened) {
    store = std::move(*opened);
  } else {
    return complain(opened.error().context, exit_failure);
  }
  std::stop_source stop;
  signals.hold();
  signals.handle_with([&stop] { stop.request_stop(); });
  const auto report = collect_once(store, system_clock(), worker_options(command), stop.get_token());
  if (!report) return complain_of(report.error(), command.address);
  const int status = print_report(command, *report);
  return stop.stop_requested() ? complain("interrupted", exit_failure) : status;
}

int collect_for_ever(const Command& command, daemon::Background& background) {
  daemon::EndSignals signals(program, daemon::EndSignals::Hangup::reopens_log);
  const auto open = [&command]() -> Result<std::shared_ptr<ObjectStore>> { return open_store(command.address, {}); };
  Daemon daemon(open, system_clock(), worker_options(command), command.interval);
  if (const auto started = daemon.start(); !started) return complain_of(started.error(), command.address);
  std::stop_source stop;
  signals.hold();
  signals.handle_with([&stop] { stop.request_stop(); });
  background.ready();
  log::info("reclaiming what is removed from " + command.address.describe());
  const auto ended = daemon.run(stop.get_token());
  if (ended) return log::info("ended"), exit_success;
  log::error("not ended cleanly: " + ended.error().context);
  return exit_failure;
}

int run_command(const Command& command) {
  daemon::Background background(program);
  if (!command.foreground) {
    if (const auto status = background.fork()) return *status;
  }
  if (const auto opened = daemon::open_log(command.log, program.name); !opened)
    return complain(opened.error().context, exit_failure);
  if (command.what == Command::What::dry_run) return look(command);
  return command.what == Command::What::once ? collect(command) : collect_for_ever(command, background);
}

int run(const std::vector<std::string>& words) {
  const auto command = parse_command(words);
  if (!command) return complain(command.error().context + " (lccfs-gc --help)", exit_usage);
  if (command->what == Command::What::help) {
    std::cout << help_text();
    return exit_success;
  }
  if (command->what == Command::What::version) {
    std::cout << "lccfs-gc " LCCFS_VERSION "\n";
    return exit_success;
  }
  return run_command(*command);
}

}  // namespace
}  // namespace lccfs::gc

int main(int argc, char** argv) {
  return lccfs::run_program(argc, argv, "lccfs-gc", {lccfs::gc::exit_failure, lccfs::gc::exit_failure}, lccfs::gc::run);
}
