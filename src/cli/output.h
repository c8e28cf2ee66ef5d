// SPDX-License-Identifier: LGPL-2.1-or-later
// What the commands print that look at a volume, make one or change one. Pure functions; names may hold any bytes.
#pragma once

#include <string>
#include <vector>

#include "lccfs/object_store.h"
#include "lccfs/volume.h"
#include "survey/inode_facts.h"
#include "survey/load.h"
#include "survey/usage.h"

namespace lccfs::cli {

std::string df_as_text(const Capacity& capacity, const std::string& volume);
std::string df_as_json(const Capacity& capacity);

struct DuOutput {
  std::string path;  ///< of the first directory
  bool summary = false;
  bool human = false;  ///< sizes with units; else in KiB
};
/// A line for each directory after those below it.
std::string du_as_text(const std::vector<survey::DirectoryUsage>& directories, const DuOutput& how);
std::string du_as_json(const std::vector<survey::DirectoryUsage>& directories, const DuOutput& how);

/// A second of UTC, and a part of it (".5"). What no calendar shows is told in seconds.
std::string utc_text(std::int64_t seconds, const std::string& fraction = "");

/// Times are UTC.
std::string stat_as_text(const survey::InodeFacts& facts, std::uint64_t object_size_bytes);
std::string stat_as_json(const survey::InodeFacts& facts, std::uint64_t object_size_bytes);

// Of a volume that `mkfs` has made, `upgrade` has upgraded, or would, and `load` has filled; `volume` is its address.
std::string made_as_text(const std::string& volume);
std::string made_as_json(const std::string& uuid, const MakeVolumeOptions& options);
std::string upgrade_as_text(const Upgraded& upgraded, bool dry_run, const std::string& volume);
std::string upgrade_as_json(const Upgraded& upgraded, bool dry_run);
std::string loaded_as_text(const survey::Loaded& loaded, const std::string& volume);
std::string loaded_as_json(const survey::Loaded& loaded);

}  // namespace lccfs::cli
