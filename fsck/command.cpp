// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fsck/command.h"

#include "options/command_line.h"

namespace lccfs::fsck {
namespace {

constexpr std::uint64_t most_jobs = 1024;

constexpr const char* footer = R"(Examples:
  lccfs-fsck -c /etc/ceph/ceph.conf -p vms             check, and change nothing
  lccfs-fsck -p vms -n nova --repair                   repair what is found
  lccfs-fsck --local /srv/volume --repair --orphans delete
  lccfs-fsck -p vms --json > findings.json             for programs

Exit status, added up: 0 nothing found, 1 repaired, 4 found and not repaired, 8 could not run, 16 wrong usage.)";

}  // namespace

Result<Command> parse_command(const std::vector<std::string>& words) {
  using repair::Orphans;
  Command command;
  bool repair = false;
  std::optional<Orphans> orphans;
  options::CommandLine line({.name = "lccfs-fsck",
                             .usage = "VOLUME [OPTION]...",
                             .summary = "Checks an LCCFS volume that is not mounted, and repairs it on request.",
                             .footer = footer});
  options::add_address(line, command.address);
  line.group("Check");
  line.flag("--repair", repair, "repair what is found; otherwise nothing is changed");
  line.option("--orphans", "keep|delete",
              options::choice(orphans, {{"keep", Orphans::keep}, {"delete", Orphans::remove}}),
              "repair: what has content and no name goes to\n/lost+found, or is deleted (default: keep); if the\nroot "
              "was lost, what was there is kept in any case");
  line.option("-j,--jobs", "JOBS", options::number(command.jobs, 1, most_jobs), "reads in flight (default: 16)");
  line.flag("--json", command.json, "as JSON, for programs");
  line.flag("--force", command.force,
            "although the volume is mounted: what is found may\nonly be work in progress, and repairs may do harm");
  line.configurable(options::CommandLine::Section::of_program, {"--jobs"});
  line.check([&]() -> Result<> {
    if (orphans && !repair) return failure(ErrorCode::invalid, "--orphans goes with --repair");
    command.what = repair ? Command::What::repair : Command::What::check;
    command.orphans = orphans.value_or(command.orphans);
    return {};
  });
  LCCFS_TRY(command.answer, line.parse(words));
  return command;
}

}  // namespace lccfs::fsck
