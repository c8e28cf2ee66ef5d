// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Recount, its reading half (docs/PROTOCOL.md section 5): what is to be done about an inode. The one place that decides
// what is garbage. Changes nothing. Blocks; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "instance/liveness_poll.h"
#include "reclaim/traces.h"

namespace lccfs::reclaim {

/// Which traces are retired (docs/PROTOCOL.md section 2), as one liveness poll has shown it.
class Horizon {
 public:
  /// Says of an instance that is not in the poll whether it is expired: it has no record, or has begun later. Fences
  /// are synced when it says so.
  using Resolve = std::function<Result<bool>(InstanceId)>;

  Horizon(const PollResult& poll, Resolve resolve);

  enum class Verdict {
    retired,
    not_retired,
    retired_since_now,  ///< what was read before this answer proves nothing: it is to be read again
  };
  Result<Verdict> judge(Token token) EXCLUDES(mutex_);

 private:
  std::map<InstanceId, std::uint64_t> lowest_running_;  // of those that live; 0: silent
  const Resolve resolve_;
  Mutex mutex_;
  std::set<InstanceId> expired_ GUARDED_BY(mutex_);
};

struct Assessment {
  enum class Kind {
    gone,         ///< there is no such inode
    right,        ///< live, with the links and back-pointers that it should have
    wait,         ///< something in it is not retired: leave it for a later pass
    settle_seal,  ///< sealed by a step that is retired
    settle_mark,  ///< a name of it was to move, by a step that is retired
    trim,         ///< live, and its link count or its back-pointers are to be corrected
    kill,         ///< live, and has no name: to be marked dead
    lost_parent,  ///< live, and has no name that can be found; a directory that may hold one is not there: damage
    clear_names,  ///< dead, and has names
    reclaim,      ///< dead, and nothing in the volume needs it: unless a client has it open
  };
  Kind kind = Kind::wait;
  Inode inode;  ///< as read; empty if gone
  Names names;
  /// Of what waits: retired back-pointers that are not needed beside a younger retired one to the same directory.
  std::vector<objects::BackPointer> doubles;
  bool after_a_change = false;  ///< set by Recount: it took a step on the way here
};

Result<Assessment> examine(const Query& query, Horizon& horizon, Ino ino);

/// What of a `settle_mark` is left to be done once its marks are settled.
Assessment::Kind kind_once_settled(const Assessment& assessment);

/// What is said of a `lost_parent`: "<object>: <why>".
Error describe_lost_parent(const Assessment& assessment);

/// What a trim is to write: the back-pointers to drop, `attr` if its link count is wrong, and of a directory that has
/// moved the back-pointer that becomes its first one, the xattr `parent`.
struct Trim {
  std::vector<objects::BackPointer> drop;
  std::optional<format::AttrRecord> attr;
  std::optional<format::BackPointerRecord> first;
  bool needed() const { return attr || !drop.empty(); }
};
Trim trim_of(const Assessment& assessment);

}  // namespace lccfs::reclaim
