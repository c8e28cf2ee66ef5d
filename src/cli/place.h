// SPDX-License-Identifier: LGPL-2.1-or-later
// A place in a volume, as people name it: a volume's address with a path within it; or, without an address, a path on a
// volume that is mounted here.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lccfs/object_store.h"
#include "lccfs/types.h"
#include "objects/super.h"
#include "options/command_line.h"

namespace lccfs::cli {

struct Place {
  VolumeAddress address;
  std::string path;        ///< as it was given
  std::optional<Ino> ino;  ///< known already, where the path is on a mount
};

/// What a mount of a volume says of it in the mount table: POOL, POOL/NAMESPACE, or a local directory; and ":/PATH" where
/// a part of the volume is mounted, which says nothing about the volume.
void set_volume_of_source(const std::string& source, VolumeAddress& address);

/// Of a path on a mount: sets pool and namespace, or the directory, and the inode. invalid: it is on none.
Result<> find_mounted(Place& place);

/// Whether the address says which volume it is; otherwise the path does.
bool names_volume(const Place& place);

/// The place that was given: the volume of its path is looked up where nothing else names one.
Result<Place> resolve_place(Place place);

/// The address, and the operand PATH. The file system of a path on a mount is asked for its inode number, and nothing
/// else; -c and --id say how to reach the cluster, because the mount table does not.
void add_place(options::CommandLine& line, Place& place, const std::string& operand, const std::string& help);

/// A volume that is only looked at.
struct OpenVolume {
  std::unique_ptr<ObjectStore> store;
  format::SuperRecord super;
};
Result<OpenVolume> open_to_look(const VolumeAddress& address);

/// Of the place's path within the volume: the root, where there is none.
Result<Ino> inode_of(const OpenVolume& volume, const Place& place);

}  // namespace lccfs::cli
