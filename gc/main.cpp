// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs-gc: reclaims what was removed from a volume.
#include <iostream>

#include "base/log.h"
#include "base/periodic.h"
#include "base/program.h"
#include "daemon/background.h"
#include "daemon/end_signals.h"
#include "daemon/monitor.h"
#include "gc/command.h"
#include "gc/daemon.h"
#include "gc/report.h"
#include "metrics/hanging_operations.h"
#include "metrics/measured_store.h"
#include "options/progress.h"

namespace lccfs::gc {
namespace {

constexpr Program program{.name = "lccfs-gc"};

int failed(const std::string& line) { return complain(program, line, program.failed); }

int failed(const Error& error, const VolumeAddress& address) {
  const bool missing = error.code == ErrorCode::not_found;
  return failed((missing ? address.describe() + ": " : "") + error.context);
}

WorkerOptions worker_options(const Command& command) {
  return {.jobs = command.jobs, .operations_per_second = command.operations_per_second, .grace = command.grace};
}

int print_report(const Command& command, const reclaim::PassReport& report) {
  const bool dry = command.what == Command::What::dry_run;
  std::cout << (command.json ? report_as_json(report)
                : dry        ? dry_run_text(report)
                             : report_line(report) + "\n")
            << std::flush;
  for (const std::string& line : warnings_of(report)) print_error(program.name, line);
  return needs_a_hand(report) ? program.failed : EXIT_SUCCESS;
}

int look(const Command& command) {
  // It changes nothing, and somebody waits for it.
  const auto store = open_store(command.address, {.step_timeout = std::chrono::seconds(30)});
  if (!store) return failed(store.error().context);
  const auto report = look_once(**store, system_clock(), worker_options(command));
  return report ? print_report(command, *report) : failed(report.error(), command.address);
}

int collect(const Command& command) {
  daemon::EndSignals signals(program, daemon::EndSignals::Hangup::ends);
  auto opened = open_store(command.address, {});
  if (!opened) return failed(opened.error().context);
  metrics::HangingOperations hanging(system_clock(),
                                     command.monitor.slow_after.value_or(metrics::HangingOperations::hangs_after));
  const auto store = hanging.look_at(std::move(*opened));
  std::stop_source stop;
  signals.hold();
  signals.handle_with([stop]() mutable { stop.request_stop(); });
  options::ProgressBar bar(system_clock(), options::terminal(!command.json));
  const auto show = [&bar](const RemovedGarbage& so_far) {
    bar.show({so_far.inodes + so_far.data_objects, 0, "objects removed"});
  };
  const auto report = collect_once(store, system_clock(), worker_options(command), stop.get_token(), show);
  bar.clear();
  if (!report) return failed(report.error(), command.address);
  const int status = print_report(command, *report);
  return stop.stop_requested() ? failed("interrupted") : status;
}

struct CollectorMetrics {
  explicit CollectorMetrics(std::chrono::nanoseconds slow_after)
      : store(system_clock(), metrics::store_operations(slow_after)) {}
  metrics::Operations store;
  metrics::CollectorCounts passes;
};

int collect_for_ever(const Command& command, daemon::Background& background) {
  daemon::EndSignals signals(program, daemon::EndSignals::Hangup::reopens_log);
  CollectorMetrics metrics(command.monitor.slow_after.value_or(daemon::MonitorOptions::usually_slow_after));
  daemon::Monitor monitor;
  if (const auto listening = monitor.listen(command.monitor); !listening) return failed(listening.error().context);
  const auto open = [&]() -> Result<std::shared_ptr<ObjectStore>> {
    LCCFS_TRY(auto store, open_store(command.address, {}));
    return metrics::measured(std::move(store), metrics.store);
  };
  Daemon daemon(open, system_clock(), worker_options(command), command.interval, metrics.passes);
  if (const auto started = daemon.start(); !started) return failed(started.error(), command.address);
  std::stop_source stop;
  signals.hold();
  signals.handle_with([stop]() mutable { stop.request_stop(); });
  monitor.serve({program.name, command.address.source(), ""}, [&metrics](metrics::Exposition& page) {
    metrics.store.write(page);
    metrics.passes.write(page);
  });
  const std::jthread ticks = run_each_second(system_clock(), [&metrics] { metrics.store.tick(); });
  background.ready();
  log::info("reclaiming what is removed from " + command.address.describe());
  const auto ended = daemon.run(stop.get_token());
  if (ended) return log::info("ended"), EXIT_SUCCESS;
  return log::error("not ended cleanly: " + ended.error().context), program.failed;
}

int run_command(const Command& command) {
  daemon::Background background(program);
  if (!command.foreground) {
    if (const auto status = background.fork()) return *status;
  }
  if (const auto opened = daemon::open_log(command.log, program.name); !opened) return failed(opened.error().context);
  if (command.what == Command::What::dry_run) return look(command);
  return command.what == Command::What::once ? collect(command) : collect_for_ever(command, background);
}

int run(const std::vector<std::string>& words) {
  const auto command = parse_command(words);
  if (!command) return complain(program, command.error().context, program.usage);
  if (!command->answer.empty()) return (std::cout << command->answer), EXIT_SUCCESS;
  return run_command(*command);
}

}  // namespace
}  // namespace lccfs::gc

int main(int argc, char** argv) { return lccfs::run_program(argc, argv, lccfs::gc::program, lccfs::gc::run); }
