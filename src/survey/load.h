// SPDX-License-Identifier: LGPL-2.1-or-later
// A dump's metadata into an empty volume, with the inode numbers that they had: data objects of those files that are in
// the volume are theirs again. Blocks.
#pragma once

#include <functional>
#include <istream>

#include "lccfs/object_store.h"

namespace lccfs::survey {

struct LoadOptions {
  unsigned jobs = 32;  ///< steps in flight
  /// Lines of the dump, checked and then loaded, of twice as many as it has.
  std::function<void(std::uint64_t done, std::uint64_t expected)> on_progress = [](std::uint64_t, std::uint64_t) {};
};

struct Loaded {
  std::uint64_t inodes = 0;
  std::uint64_t left_out = 0;        ///< by the dump
  std::uint64_t names_left_out = 0;  ///< to which their inodes do not point back
  std::uint64_t without_name = 0;    ///< inodes that have none then: only a repair gives them one
  /// That are there. The dump does not know what was written after it: before anything mounts the volume, a repair has
  /// to put the objects into the maps that miss them, and to move away what lies past the sizes.
  std::uint64_t data_objects = 0;
};

/// The dump is read twice: first all of it is checked. invalid, with the line's number: it is damaged, cut short or none.
/// unsupported: of a newer version. exists: the volume is not empty, or in use. In all these cases nothing was changed.
/// Any other error, and invalid where the dump was changed meanwhile, leaves a volume that no program uses but this one,
/// to be run again with the same dump.
Result<Loaded> load_volume(ObjectStore& store, std::istream& dump, const LoadOptions& options);

}  // namespace lccfs::survey
