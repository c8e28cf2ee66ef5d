// SPDX-License-Identifier: LGPL-2.1-or-later
#include <iostream>

#include "cli/commands.h"

namespace lccfs::cli {

Info::Info(options::CommandLine& program) {
  auto& line = program.add_command({.name = "info",
                                    .usage = "VOLUME [--json]",
                                    .summary = "Shows what a volume is and who uses it. Changes nothing.",
                                    .footer = R"(Examples:
  lccfs info -c /etc/ceph/ceph.conf -p vms
  lccfs info --local /srv/volume --json)"});
  options::add_address(line, address_);
  line.group("Output");
  line.flag("--json", json_, "as JSON, for programs");
}

Result<> Info::run() const {
  LCCFS_TRY(const auto store, open_store(address_, {.step_timeout = step_timeout}));
  const auto info = describe_volume(*store);
  if (!info && info.error().code == ErrorCode::not_found)
    return failure(ErrorCode::not_found,
                   "there is no volume at " + address_.describe() + "; make one with: lccfs mkfs");
  if (!info) return std::unexpected(info.error());
  std::cout << (json_ ? info_as_json(*info) : info_as_text(*info, system_clock().wall_time().seconds));
  return {};
}

}  // namespace lccfs::cli
