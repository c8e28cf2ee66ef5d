// SPDX-License-Identifier: LGPL-2.1-or-later
#include <iostream>

#include "cli/commands.h"
#include "cli/output.h"

namespace lccfs::cli {
namespace {

struct Upgrade : OnVolume {
  bool dry_run = false;
};

Result<int> run_upgrade(const Upgrade& given) {
  LCCFS_TRY(const auto store, open_store(given.address, {.step_timeout = step_timeout}));
  LCCFS_TRY(const auto upgraded, upgrade_volume(*store, given.dry_run ? UpgradeMode::only_tell : UpgradeMode::set));
  std::cout << (given.json ? upgrade_as_json(upgraded, given.dry_run)
                           : upgrade_as_text(upgraded, given.dry_run, given.address.describe()));
  return {};
}

}  // namespace

void add_upgrade(options::CommandLine& program) {
  auto& line = program.add_command({.name = "upgrade",
                                    .usage = "VOLUME [--dry-run] [--json]",
                                    .summary = "Sets the features that this version knows and the volume has not.",
                                    .footer = R"(Examples:
  lccfs upgrade -c /etc/ceph/ceph.conf -p vms --dry-run
  lccfs upgrade --local /srv/volume

Older versions cannot use the volume any more, and there is no way back. Clients that do not know the
features are named, and nothing is changed. Mounts use the features once they are mounted anew; those
that keep their locks to themselves until then are named.)"});
  auto& given = line.runs(run_upgrade);
  options::add_address(line, given.address);
  line.group("What to do");
  line.flag("--dry-run", given.dry_run, "only tell what would be done");
  add_json(line, given.json);
}

}  // namespace lccfs::cli
