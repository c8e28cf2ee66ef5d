// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fsck/options.h"

#include <sstream>

#include "options/command_line.h"

namespace lccfs::fsck {

namespace po = boost::program_options;

namespace {

constexpr std::uint64_t most_jobs = 1024;

constexpr const char* examples = R"(
Examples:
  lccfs-fsck -c /etc/ceph/ceph.conf -p vms             check, and change nothing
  lccfs-fsck -p vms -n nova --repair                   repair what is found
  lccfs-fsck --local /srv/volume --repair --orphans delete
  lccfs-fsck -p vms --json > findings.json             for programs

Exit status, added up: 0 nothing found, 1 repaired, 4 found and not repaired, 8 could not run, 16 wrong usage.
)";

options::Description description() {
  options::Description own("Check");
  const auto text = [] { return po::value<std::string>(); };
  own.add_options()                                                     //
      ("repair", "repair what is found; otherwise nothing is changed")  //
      ("orphans", text()->value_name("keep|delete"),
       "repair: what has content and no name goes to /lost+found, or is deleted (default: keep)")  //
      ("jobs,j", text()->value_name("JOBS"), "reads in flight (default: 16)")                      //
      ("json", "as JSON, for programs")                                                            //
      ("force",
       "although the volume is mounted: what is found may only be work in progress, and repairs may do harm")  //
      ("help,h", "show this text")                                                                             //
      ("version", "show the version");
  options::Description all;
  all.add(options::address_options()).add(own);
  return all;
}

Result<> fill_in_orphans(const options::Values& values, Command& command) {
  if (!values.contains("orphans")) return {};
  const auto text = values["orphans"].as<std::string>();
  if (command.what != Command::What::repair) return failure(ErrorCode::invalid, "--orphans goes with --repair");
  if (text != "keep" && text != "delete")
    return failure(ErrorCode::invalid, "--orphans is keep or delete, not '" + text + "'");
  command.orphans = text == "keep" ? repair::Orphans::keep : repair::Orphans::remove;
  return {};
}

}  // namespace

Result<Command> parse_command(const std::vector<std::string>& words) {
  LCCFS_TRY(const options::Values values, options::parse(words, description()));
  Command command;
  if (values.contains("repair")) command.what = Command::What::repair;
  if (values.contains("help")) command.what = Command::What::help;
  if (values.contains("version")) command.what = Command::What::version;
  if (command.what == Command::What::help || command.what == Command::What::version) return command;
  LCCFS_TRY(command.address, options::address_of(values));
  LCCFS_CHECK(fill_in_orphans(values, command));
  if (values.contains("jobs")) {
    LCCFS_TRY(const std::uint64_t jobs, options::number_of(values, "jobs", 1, most_jobs));
    command.jobs = static_cast<unsigned>(jobs);
  }
  command.json = values.contains("json");
  command.force = values.contains("force");
  return command;
}

std::string help_text() {
  std::ostringstream text;
  text << "Usage: lccfs-fsck VOLUME [OPTION]...\n"
       << "Checks an LCCFS volume that is not mounted, and repairs it on request.\n\n"
       << description() << examples;
  return text.str();
}

}  // namespace lccfs::fsck
