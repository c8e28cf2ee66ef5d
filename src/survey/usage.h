// SPDX-License-Identifier: LGPL-2.1-or-later
// What is stored below a place, from the allocation maps: no data object is looked at.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs::survey {

struct Space {
  std::uint64_t bytes = 0;           ///< as st_blocks counts them
  std::uint64_t apparent_bytes = 0;  ///< sizes of files and symlinks
  std::uint64_t inodes = 0;
  Space& operator+=(const Space& other);
};

struct DirectoryUsage {
  std::size_t parent = 0;  ///< its index; of the first one 0
  std::string name;        ///< of the first one empty
  Space space;             ///< with all below
};

struct UsageOptions {
  unsigned jobs = 32;  ///< reads in flight
  std::function<void(std::uint64_t inodes)> on_progress = [](std::uint64_t) {};
  std::function<void(const std::string&)> on_damage = [](const std::string&) {};
};

/// The first one is `start`, which may also be a file; each stands after its parent. A file with several names counts
/// once, where it is met first. What another client has not stored yet is not counted. An error is the store's, or says
/// that `start` cannot be read. Blocks.
Result<std::vector<DirectoryUsage>> measure_usage(ObjectStore& store, const format::SuperRecord& super, Ino start,
                                                  const UsageOptions& options);

}  // namespace lccfs::survey
