// SPDX-License-Identifier: LGPL-2.1-or-later
// What the traces in an inode object lead to: where its names are, and which inodes a directory has let go of. Blocking
// reads; any thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/object_names.h"
#include "objects/inode.h"

namespace lccfs::reclaim {

using objects::Inode;
using objects::is_damage;
using objects::keys_at_once;
using objects::Query;

/// An inode with its traces. nullopt: there is no such inode.
Result<std::optional<Inode>> read_traces(const Query& query, Ino ino);

/// Calls `work` with each `d/` key that the directory has, until it fails. A directory that is gone has none.
Result<> for_each_detached(const Query& query, Ino directory,
                           const std::function<Result<>(const format::DetachedKey&)>& work);
/// The same with `x/` keys.
Result<> for_each_decision(const Query& query, Ino directory,
                           const std::function<Result<>(Token, const std::string& key, const Bytes& value)>& work);

/// What has become of the move that a mark announces. impossible: the directory that it leads to is gone.
enum class MoveState { undecided, committed, cancelled, impossible };
Result<MoveState> state_of_move(const Query& query, const format::EntryRecord::Mark& mark);

/// A name that stands with a mark, by its reverse key.
struct MarkedName {
  Ino directory;
  std::string name;
  format::EntryRecord record;
};
/// Whether the name still has that mark. corrupt: its entry has another, or none: both are written together, so that is
/// damage, and no step settles it.
Result<bool> has_mark(const Query& query, const format::VolumeUuid& uuid, const MarkedName& marked);
/// The old name of a move that is committed: nullopt if it is gone.
Result<std::optional<MarkedName>> old_name_of(const Query& query, const format::VolumeUuid& uuid, Token token,
                                              const format::DecisionRecord& committed);

/// The names of an inode over the distinct parents of its back-pointers, each directory read at one version.
struct Names {
  std::vector<Token> removals;  ///< steps that took a name from it (d/ keys), or are to move one away (marks)
  std::map<Ino, std::vector<std::string>> by_parent;  ///< only parents that hold some; without those that moved away
  std::vector<MarkedName> marked;                     ///< those that moved away, and those that perhaps will
  /// There are no such objects; or there is a root, and it was made anew since. What they held is not known.
  std::vector<Ino> missing_parents;
  std::size_t total() const {
    std::size_t all = 0;
    for (const auto& [parent, names] : by_parent) all += names.size();
    return all;
  }
};
Result<Names> count_names(const Query& query, const Inode& inode);

/// The directory that holds the name of a directory; 1 read if it points back to one only. nullopt: none does.
Result<std::optional<Ino>> parent_of(const Query& query, Ino directory);

/// Whether a directory is `above`, or below it. Under the rename lock (src/fs/rename_lock.h), or it may change
/// meanwhile. stale: it was removed. 1 read for each directory on the way.
Result<bool> is_inside(const Query& query, Ino directory, Ino above);

/// Whether it has a name. A name that moves meanwhile may be missed in both directories: "none" is said of what was
/// looked at twice, and did not change in between.
Result<bool> has_a_name(const Query& query, Ino ino);

}  // namespace lccfs::reclaim
