// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs: the administration of volumes.
#include <cstdio>
#include <string_view>

#include "base/program.h"
#include "cli/commands.h"

namespace lccfs::cli {
namespace {

struct Command {
  std::string_view name;
  int (*run)(const Words& words);
};

constexpr Command commands[] = {{"mkfs", mkfs}, {"info", info}};

constexpr const char* help = R"(Usage: lccfs COMMAND VOLUME [OPTION]...

Commands (each has its own --help):
  mkfs    make an empty volume
  info    show what a volume is and who uses it

VOLUME is -c CEPH.CONF -p POOL [-n NAMESPACE] [--id CLIENT], or --local DIRECTORY.

Examples:
  lccfs mkfs -c /etc/ceph/ceph.conf -p vms
  lccfs info --local /srv/volume --json

Exit status: 0 done, 1 failed, 2 wrong usage.
lccfs-fuse mounts a volume.
)";

int run(const Words& words) {
  const std::string_view name = words.empty() ? std::string_view() : words.front();
  for (const Command& command : commands) {
    if (command.name == name) return command.run({words.begin() + 1, words.end()});
  }
  if (name == "--version") return std::puts("lccfs " LCCFS_VERSION), exit_success;
  if (name == "--help" || name == "-h") return std::fputs(help, stdout), exit_success;
  print_error("lccfs", (words.empty() ? "which command?" : "there is no command '" + words.front() + "'") +
                           "; lccfs --help lists the commands");
  return exit_usage;
}

}  // namespace
}  // namespace lccfs::cli

int main(int argc, char** argv) {
  return lccfs::run_program(argc, argv, "lccfs", {lccfs::cli::exit_failure, lccfs::cli::exit_failure}, lccfs::cli::run);
}
