// SPDX-License-Identifier: LGPL-2.1-or-later
#include <iostream>

#include "base/program.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace lccfs::cli {
namespace {

struct Mkfs : OnVolume {
  MakeVolumeOptions volume;
};

Result<int> run_mkfs(const Mkfs& given) {
  LCCFS_TRY(const auto store, open_store(given.address, {.step_timeout = step_timeout, .create = true}));
  LCCFS_TRY(const auto uuid, make_volume(*store, system_clock(), given.volume));
  std::cout << (given.json ? made_as_json(uuid, given.volume) : made_as_text(given.address.describe()));
  if (const Result<> told = store->announce(); !told) print_error("lccfs mkfs", told.error().context);
  return {};
}

}  // namespace

void add_mkfs(options::CommandLine& program) {
  auto& line = program.add_command(
      {.name = "mkfs", .usage = "VOLUME [OPTION]...", .summary = "Makes an empty volume.", .footer = R"(Examples:
  lccfs mkfs -c /etc/ceph/ceph.conf -p vms --label "VM disks"
  lccfs mkfs -p vms -n nova --id nova --object-size 8M
  lccfs mkfs --local /srv/volume

A volume that is there already is never overwritten.)"});
  auto& given = line.runs(run_mkfs);
  options::add_address(line, given.address);
  line.group("New volume");
  line.option("--object-size", "SIZE", options::size(given.volume.object_size_bytes, UINT32_MAX),
              "files are cut into objects of this size:\na power of two, 64K to 32M (default: 4M)");
  line.option("--label", "TEXT", options::text(given.volume.label), "a name for people");
  line.option("--grace", "SECONDS", options::number(given.volume.grace_seconds, 0, UINT32_MAX),
              "how long the collector waits before it asks (default: 60)");
  line.option("--data-pool", "POOL", options::text(given.volume.data_pool),
              "keep the files' bytes in this pool (may be erasure-coded)");
  line.flag("--for-load", given.volume.to_be_loaded,
            "for lccfs load, which has to follow: the data objects\nof a volume whose metadata are lost may be there");
  add_json(line, given.json);
  line.check([&given]() -> Result<> {
    if (!given.volume.data_pool.empty() && !given.address.local_directory.empty())
      return failure(ErrorCode::invalid, "--data-pool is for volumes in Ceph pools");
    return check_options(given.volume);  // before the directory of a local volume is made
  });
}

}  // namespace lccfs::cli
