// SPDX-License-Identifier: LGPL-2.1-or-later
#include <iostream>

#include "cli/commands.h"
#include "cli/output.h"

namespace lccfs::cli {

Upgrade::Upgrade(options::CommandLine& program) {
  auto& line = program.add_command({.name = "upgrade",
                                    .usage = "VOLUME [--dry-run] [--json]",
                                    .summary = "Sets the features that this version knows and the volume has not.",
                                    .footer = R"(Examples:
  lccfs upgrade -c /etc/ceph/ceph.conf -p vms --dry-run
  lccfs upgrade --local /srv/volume

Older versions cannot use the volume any more, and there is no way back. Clients that do not know the
features are named, and nothing is changed. Mounts use the features once they are mounted anew; those
that keep their locks to themselves until then are named.)"});
  options::add_address(line, address_);
  line.group("What to do");
  line.flag("--dry-run", dry_run_, "only tell what would be done");
  line.group("Output");
  line.flag("--json", json_, "as JSON, for programs");
}

Result<> Upgrade::run() const {
  LCCFS_TRY(const auto store, open_store(address_, {.step_timeout = step_timeout}));
  LCCFS_TRY(const auto upgraded, upgrade_volume(*store, dry_run_ ? UpgradeMode::only_tell : UpgradeMode::set));
  std::cout << (json_ ? upgrade_as_json(upgraded, dry_run_) : upgrade_as_text(upgraded, dry_run_, address_.describe()));
  return {};
}

}  // namespace lccfs::cli
