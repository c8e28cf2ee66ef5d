// SPDX-License-Identifier: LGPL-2.1-or-later
#include <iostream>

#include "cli/commands.h"

namespace lccfs::cli {
namespace {

Result<int> run_info(const OnVolume& given) {
  LCCFS_TRY(const auto store, open_store(given.address, {.step_timeout = step_timeout}));
  const auto info = describe_volume(*store);
  if (!info && info.error().code == ErrorCode::not_found) return std::unexpected(given.address.no_volume());
  if (!info) return std::unexpected(info.error());
  std::cout << (given.json ? info_as_json(*info) : info_as_text(*info, system_clock().wall_time().seconds));
  return {};
}

}  // namespace

void add_info(options::CommandLine& program) {
  auto& line = program.add_command({.name = "info",
                                    .usage = "VOLUME [--json]",
                                    .summary = "Shows what a volume is and who uses it. Changes nothing.",
                                    .footer = R"(Examples:
  lccfs info -c /etc/ceph/ceph.conf -p vms
  lccfs info --local /srv/volume --json)"});
  auto& given = line.runs(run_info);
  options::add_address(line, given.address);
  add_json(line, given.json);
}

}  // namespace lccfs::cli
