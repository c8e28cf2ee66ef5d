// SPDX-License-Identifier: LGPL-2.1-or-later
// The transactions of recount and the collector (docs/PROTOCOL.md section 5). Pure functions. All are for
// Instance::run_repeatable: guarded by the version that was read, or harmless if done twice; a caller that is refused
// reads again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs::txn {

/// It has no name, as of that version.
MetaTxn mark_unnamed_dead(Ino ino, std::uint64_t version);

/// Back-pointers that lead nowhere, by their keys (empty: the xattr `parent`), the link count, and what `parent` is now.
MetaTxn trim_links(Ino ino, std::uint64_t version, const std::vector<std::string>& back_pointer_keys,
                   const std::optional<format::AttrRecord>& attr,
                   const std::optional<format::BackPointerRecord>& first);

/// Entries and reverse keys of a dead inode out of its parent.
MetaTxn remove_dead_names(Ino directory, std::uint64_t version, const std::vector<std::string>& keys,
                          const std::optional<std::uint64_t>& nsub);

/// The same of a dead directory's children, which get a d/ key each.
MetaTxn detach_dead_names(Ino directory, std::uint64_t version, const std::vector<std::string>& keys,
                          const std::vector<Ino>& children, Token token);

/// Of a dead file: the data objects of that block of the map are removed for certain, but for those that are `left`.
MetaTxn forget_removed_data(Ino ino, std::uint64_t version, std::uint64_t map_block, const format::MapBlock& left);

MetaTxn remove_dead_inode(Ino ino, std::uint64_t version);

/// d/ and x/ keys that were dealt with, and l/ keys of instances that are expired.
MetaTxn remove_traces(Ino directory, const std::vector<std::string>& keys);

}  // namespace lccfs::txn
