// SPDX-License-Identifier: LGPL-2.1-or-later
// One inode object, page by page of its keys: all that can be judged by itself, and what others are judged by.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "check/finding.h"
#include "check/namespace_index.h"
#include "check/streaming.h"
#include "check/volume_facts.h"

namespace lccfs::check {

/// What data objects are judged by, of a file with few of them.
struct SmallFile {
  static constexpr unsigned most_objects = 64;

  Ino ino;
  std::uint64_t size_bytes : 63 = 0;
  std::uint64_t is_leased : 1 = 0;
  std::uint64_t may_exist = 0;  ///< of the first objects; there are no others
};
static_assert(sizeof(SmallFile) == 24);

struct ScannedInode {
  InodeSummary summary;
  LinkSum entries;         ///< links to inodes, as the entries have them
  LinkSum names, reverse;  ///< by entries, and by reverse keys
  std::uint64_t subdirectories = 0;
  bool has_detached = false;  ///< d/ keys
  bool has_decisions = false;
  std::uint64_t highest_fence = 0;
  std::uint64_t highest_instance = 0;  ///< in tokens and keys: all that is left, perhaps, of one that had it
  std::optional<SmallFile> small_file;
  std::vector<Finding> findings;
};

/// Reads the inode with all its keys, at one version, and tells what it is. Tells nothing if it is gone. `facts` and
/// `on_inode` outlive the window.
using OnInode = std::function<void(Ino, ScannedInode)>;
Result<> scan_inode(ReadWindow& window, const VolumeFacts& facts, Ino ino, const OnInode& on_inode);

}  // namespace lccfs::check
