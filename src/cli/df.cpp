// SPDX-License-Identifier: LGPL-2.1-or-later
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace lccfs::cli {
namespace {

Result<int> run_df(const OnPlace& given) {
  LCCFS_TRY(const Place place, resolve_place(given.place));
  LCCFS_TRY(const auto volume, open_to_look(place.address));
  LCCFS_TRY(const auto capacity, volume.store->capacity());
  std::cout << (given.json ? df_as_json(capacity) : df_as_text(capacity, place.address.describe()));
  return {};
}

}  // namespace

void add_df(options::CommandLine& program) {
  auto& line = program.add_command({.name = "df",
                                    .usage = "{VOLUME | PATH} [--json]",
                                    .summary = "Shows how much space a volume has, as statfs(2) on a mount does.",
                                    .footer = R"(Examples:
  lccfs df -c /etc/ceph/ceph.conf -p vms
  lccfs df /mnt/vms
  lccfs df --local /srv/volume --json

The space is the pool's, and shared with all that is in it. Objects are those of the whole pool, too.)"});
  auto& given = line.runs(run_df);
  add_place(line, given.place, "PATH", "instead of VOLUME: any path on a mount of it");
  add_json(line, given.json);
  line.check([&given]() -> Result<> {
    if (given.place.path.empty() || !names_volume(given.place)) return {};
    return failure(ErrorCode::invalid, "give VOLUME or PATH, not both");
  });
}

}  // namespace lccfs::cli
