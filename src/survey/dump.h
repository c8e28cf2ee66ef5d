// SPDX-License-Identifier: LGPL-2.1-or-later
// All metadata of a volume as lines (dump_lines.h), as it is stored. Reads only, with little memory: what it keeps is
// a bit for each inode, the parents of each with several links, and the directories that are still to be read.
#pragma once

#include <functional>
#include <string>

#include "format/records.h"
#include "lccfs/clock.h"
#include "lccfs/object_store.h"

namespace lccfs::survey {

struct DumpOptions {
  unsigned jobs = 32;  ///< reads in flight
  std::function<Result<>(const std::string& line)> on_line;
  std::function<void(std::uint64_t inodes)> on_progress = [](std::uint64_t) {};
  /// What is left out, because it cannot be read.
  std::function<void(const std::string&)> on_damage = [](const std::string&) {};
};

/// Every inode that has a path from the root, each after a directory that names it. If clients change the volume
/// meanwhile, each inode is as it was at some moment, and not all at the same; names that it got since then are left out
/// without a word. Answers how many were left out. An error is the store's, or of `on_line`. Blocks.
Result<std::uint64_t> dump_volume(ObjectStore& store, const format::SuperRecord& super, Clock& clock,
                                  const DumpOptions& options);

}  // namespace lccfs::survey
