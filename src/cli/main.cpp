// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs: the administration of volumes.
#include <iostream>

#include "base/program.h"
#include "cli/commands.h"

namespace lccfs::cli {
namespace {

constexpr Program program{.name = "lccfs"};

int run(const std::vector<std::string>& words) {
  options::CommandLine line(
      {.name = program.name,
       .usage = "COMMAND VOLUME [OPTION]...",
       .summary = "Administers LCCFS volumes; lccfs-fuse mounts them.",
       .footer = R"(VOLUME is -c CEPH.CONF -p POOL [-n NAMESPACE] [--id CLIENT], or --local DIRECTORY.

Examples:
  lccfs mkfs -c /etc/ceph/ceph.conf -p vms
  lccfs info --local /srv/volume --json
  lccfs clients -c /etc/ceph/ceph.conf -p vms
  lccfs upgrade --local /srv/volume --dry-run
  lccfs top

Exit status: 0 done, 1 failed, 2 wrong usage; doctor has one more.)"});
  for (const auto add : {add_mkfs, add_info, add_clients, add_evict, add_auth, add_upgrade, add_df, add_du, add_stat,
                         add_dump, add_load, add_doctor, add_top, add_log_level}) {
    add(line);
  }
  const auto text = line.parse(words);
  if (!text) return complain(program, text.error().context, program.usage);
  if (!text->empty()) return (std::cout << *text), EXIT_SUCCESS;
  const auto status = line.run();
  if (status) return *status;
  print_error("lccfs " + line.command(), status.error().context);
  return program.failed;
}

}  // namespace
}  // namespace lccfs::cli

int main(int argc, char** argv) { return lccfs::run_program(argc, argv, lccfs::cli::program, lccfs::cli::run); }
