// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gc/command.h"

#include <sstream>

namespace lccfs::gc {

namespace po = boost::program_options;

namespace {

constexpr std::uint64_t most_jobs = 1024;
constexpr std::uint64_t longest_grace_seconds = 1'000'000'000;

constexpr const char* examples = R"(
Examples:
  lccfs-gc -c /etc/ceph/ceph.conf -p vms                  in the background, for the volume in the Ceph pool "vms"
  lccfs-gc --local /srv/volume -f --interval 10           in the foreground, a pass every ten seconds
  lccfs-gc -p vms -n nova --once                          all that can be done now, for cron
  lccfs-gc -p vms -n nova --once --grace 0 -j 64          the same at once, and fast
  lccfs-gc -p vms --dry-run                               what it would do, and which clients are gone

Exit status: 0 done, 1 failed, interrupted or damaged objects met, 2 wrong usage.
)";

options::Description collector_description() {
  options::Description description("Collector");
  const auto text = [] { return po::value<std::string>(); };
  description.add_options()                                                                                          //
      ("once", "do all that can be done now, print a summary and end")                                               //
      ("dry-run", "say what would be done and change nothing")                                                       //
      ("json", "with --once or --dry-run: print JSON, for programs")                                                 //
      ("jobs,j", text()->value_name("JOBS"), "store operations in flight (default: 16)")                             //
      ("rate", text()->value_name("OPS/S"), "at most so many changes of the store in a second (default: no limit)")  //
      ("interval", text()->value_name("SECONDS"), "pause between two passes (default: 60)")                          //
      ("grace", text()->value_name("SECONDS"),
       "leave alone what is younger than this (default: the volume's grace period)")  //
      ("foreground,f", "stay in the foreground, and log to standard error");
  return description;
}

options::Description description() {
  options::Description all;
  all.add(options::address_options()).add(collector_description()).add(daemon::log_and_other_options());
  return all;
}

Result<> fill_in_collector(const options::Values& values, Command& command) {
  if (values.contains("jobs")) {
    LCCFS_TRY(const std::uint64_t jobs, options::number_of(values, "jobs", 1, most_jobs));
    command.jobs = static_cast<unsigned>(jobs);
  }
  if (values.contains("rate")) {
    LCCFS_TRY(command.operations_per_second, options::number_of(values, "rate", 0, UINT64_MAX));
  }
  if (values.contains("grace")) {
    LCCFS_TRY(const std::uint64_t seconds, options::number_of(values, "grace", 0, longest_grace_seconds));
    command.grace = std::chrono::seconds(seconds);
  }
  if (values.contains("interval")) {
    LCCFS_TRY(command.interval, options::seconds_of(values, "interval"));
    if (command.interval.count() == 0) return failure(ErrorCode::invalid, "--interval must be longer than 0");
  }
  return {};
}

Command::What what_of(const options::Values& values) {
  if (values.contains("help")) return Command::What::help;
  if (values.contains("version")) return Command::What::version;
  if (values.contains("dry-run")) return Command::What::dry_run;
  return values.contains("once") ? Command::What::once : Command::What::daemon;
}

}  // namespace

Result<Command> parse_command(const std::vector<std::string>& words) {
  LCCFS_TRY(const options::Values values, options::parse(words, description()));
  Command command;
  command.what = what_of(values);
  if (command.what == Command::What::help || command.what == Command::What::version) return command;
  LCCFS_TRY(command.address, options::address_of(values));
  LCCFS_CHECK(fill_in_collector(values, command));
  const bool daemon = command.what == Command::What::daemon;
  command.json = values.contains("json");
  if (command.json && daemon) return failure(ErrorCode::invalid, "--json goes with --once or --dry-run");
  if (values.contains("interval") && !daemon)
    return failure(ErrorCode::invalid, "--interval does not go with --once or --dry-run");
  command.foreground = values.contains("foreground") || !daemon;
  LCCFS_TRY(command.log, daemon::log_options_of(values, command.foreground));
  return command;
}

std::string help_text() {
  std::ostringstream text;
  text << "Usage: lccfs-gc VOLUME [OPTION]...\n"
       << "Reclaims what was removed from an LCCFS volume, for as long as it runs.\n\n"
       << description() << examples;
  return text.str();
}

}  // namespace lccfs::gc
