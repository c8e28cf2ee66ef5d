// SPDX-License-Identifier: LGPL-2.1-or-later
// The transactions of `lccfs load` (src/survey/load.h), on a volume that no instance uses. Pure functions. Run twice,
// each leaves the same; `settle root` is refused then.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "format/records.h"
#include "lccfs/object_store.h"
#include "txn/map_blocks.h"
#include "txn/namespace_txn.h"

namespace lccfs::txn {

/// The token of all traces that a load leaves: of no instance, so that they are retired.
inline constexpr Token token_of_load{InstanceId{0}, 1};
/// The birth token of what one load makes, by the number of that load. Steps on what is there guard `attr` as this load has
/// made it: one that comes late, when another load has made the volume, is refused.
constexpr Token birth_token_of_load(std::uint64_t load) { return {InstanceId{0}, load}; }

struct LoadedInode {
  Ino ino;
  format::AttrRecord attr;
  TimeSpec atime, mtime, ctime;
  std::uint64_t size_bytes = 0;  ///< regular files and symlinks
  std::string symlink_target = {};
  std::set<Ino> parents = {};                                 ///< directories that name it
  std::map<std::uint64_t, format::MapBlock> map_blocks = {};  ///< regular files
  std::map<std::string, Bytes> attributes = {};               ///< extended ones; `attr` has their flags
};
/// Without names, and with the first blocks of its map and the first of its attributes. It must not be there.
MetaTxn load_inode(const LoadedInode& inode);
/// The blocks that come after so many. The inode must be there.
MetaTxn load_map(const LoadedInode& inode, std::size_t blocks_before);
/// The attributes that come after so many, as many as one step has room for. The inode must be there.
MetaTxn load_attributes(const LoadedInode& inode, std::size_t attributes_before);
/// How many those are.
std::size_t count_of_attributes(const LoadedInode& inode, std::size_t attributes_before);

struct LoadedName {
  std::string name;
  Ino ino;
  FileType type = FileType::regular;
};
/// Names of a directory that is there, with that attr; `nsub` with those of them that are directories.
MetaTxn load_entries(const format::VolumeUuid& uuid, Ino directory, const format::AttrRecord& attr,
                     const std::vector<LoadedName>& names, std::uint64_t nsub);
/// Once all names are there: the root has the birth token that mkfs gives it. With another one of no instance it would
/// stand for one that a repair has made anew.
MetaTxn settle_root(format::AttrRecord attr);

}  // namespace lccfs::txn
