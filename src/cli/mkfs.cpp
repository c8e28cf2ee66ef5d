// SPDX-License-Identifier: LGPL-2.1-or-later
#include <iostream>

#include "base/program.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace lccfs::cli {

Mkfs::Mkfs(options::CommandLine& program) {
  auto& line = program.add_command(
      {.name = "mkfs", .usage = "VOLUME [OPTION]...", .summary = "Makes an empty volume.", .footer = R"(Examples:
  lccfs mkfs -c /etc/ceph/ceph.conf -p vms --label "VM disks"
  lccfs mkfs -p vms -n nova --id nova --object-size 8M
  lccfs mkfs --local /srv/volume

A volume that is there already is never overwritten.)"});
  options::add_address(line, address_);
  line.group("New volume");
  line.option("--object-size", "SIZE", options::size(volume_.object_size_bytes, UINT32_MAX),
              "files are cut into objects of this size:\na power of two, 64K to 32M (default: 4M)");
  line.option("--label", "TEXT", options::text(volume_.label), "a name for people");
  line.option("--grace", "SECONDS", options::number(volume_.grace_seconds, 0, UINT32_MAX),
              "how long the collector waits before it asks (default: 60)");
  line.option("--data-pool", "POOL", options::text(volume_.data_pool),
              "keep the files' bytes in this pool (may be erasure-coded)");
  line.flag("--for-load", volume_.to_be_loaded,
            "for lccfs load, which has to follow: the data objects\nof a volume whose metadata are lost may be there");
  line.group("Output");
  line.flag("--json", json_, "as JSON, for programs");
  line.check([this]() -> Result<> {
    if (!volume_.data_pool.empty() && !address_.local_directory.empty())
      return failure(ErrorCode::invalid, "--data-pool is for volumes in Ceph pools");
    return check_options(volume_);  // before the directory of a local volume is made
  });
}

Result<> Mkfs::run() const {
  LCCFS_TRY(const auto store, open_store(address_, {.step_timeout = step_timeout, .create = true}));
  LCCFS_TRY(const auto uuid, make_volume(*store, system_clock(), volume_));
  std::cout << (json_ ? made_as_json(uuid, volume_) : made_as_text(address_.describe()));
  if (const Result<> told = store->announce(); !told) print_error("lccfs mkfs", told.error().context);
  return {};
}

}  // namespace lccfs::cli
