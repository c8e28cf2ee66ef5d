// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs: the administration of volumes.
#include <functional>
#include <iostream>
#include <map>

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
  Mkfs mkfs(line);
  Info info(line);
  Clients clients(line);
  Evict evict(line);
  Auth auth(line);
  Upgrade upgrade(line);
  Df df(line);
  Du du(line);
  Stat stat(line);
  Dump dump(line);
  Load load(line);
  Doctor doctor(line);
  Top top(line);
  LogLevel log(line);
  const auto text = line.parse(words);
  if (!text) return complain(program, text.error().context, program.usage);
  if (!text->empty()) return (std::cout << *text), EXIT_SUCCESS;
  int status = EXIT_SUCCESS;
  const std::map<std::string, std::function<Result<>()>> commands{
      {"mkfs", [&] { return mkfs.run(); }},
      {"info", [&] { return info.run(); }},
      {"clients", [&] { return clients.run(); }},
      {"evict", [&] { return evict.run(); }},
      {"auth", [&] { return auth.run(); }},
      {"upgrade", [&] { return upgrade.run(); }},
      {"df", [&] { return df.run(); }},
      {"doctor",
       [&]() -> Result<> {
         LCCFS_TRY(status, doctor.run());
         return {};
       }},
      {"dump", [&] { return dump.run(); }},
      {"load", [&] { return load.run(); }},
      {"du", [&] { return du.run(); }},
      {"stat", [&] { return stat.run(); }},
      {"top", [&] { return top.run(); }},
      {"log", [&] { return log.run(); }},
  };
  const auto done = commands.at(line.command())();
  if (done) return status;
  print_error("lccfs " + line.command(), done.error().context);
  return program.failed;
}

}  // namespace
}  // namespace lccfs::cli

int main(int argc, char** argv) { return lccfs::run_program(argc, argv, lccfs::cli::program, lccfs::cli::run); }
