// SPDX-License-Identifier: LGPL-2.1-or-later
// From paths within a volume to inodes, as they are stored: for programs that only look. Blocking; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "format/records.h"
#include "objects/object.h"

namespace lccfs::survey {

/// The entry of that name; nullopt: there is none.
Result<std::optional<format::EntryRecord>> find_entry(const objects::Query& query, const format::VolumeUuid& uuid,
                                                      Ino directory, const std::string& name);

/// From the root; symlinks are not followed, and ".." is not known. not_found: the error has the path up to there.
Result<Ino> find_inode(const objects::Query& query, const format::VolumeUuid& uuid, std::string_view path);

/// Whether an entry with that mark names its inode no more: the move has committed, and the name is in the new
/// directory.
Result<bool> has_moved_away(const objects::Query& query, const format::EntryRecord::Mark& mark);

}  // namespace lccfs::survey
