// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The locks of one file, of this client's owners and, as far as they are known, of all others (docs/LOCKS.md sections 1
// and 2). The step table is on top of file_locks.cpp. Blocks on the store, and on no other client: the caller is told
// which client has a lock in conflict. Not for completions, nor for the thread that receives requests.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/mutex.h"
#include "fs/inodes.h"
#include "fs/lock_table.h"
#include "txn/lock_txn.h"

namespace lccfs {

/// Instances that were found to be expired, after fences were synced. They stay so.
class ExpiredInstances {
 public:
  void add(InstanceId instance) EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    expired_.insert(instance);
  }
  bool contains(InstanceId instance) const EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    return expired_.contains(instance);
  }

 private:
  mutable Mutex mutex_;
  std::set<InstanceId> expired_ GUARDED_BY(mutex_);
};

class FileLocks {
 public:
  FileLocks(Ino ino, Instance& instance) : ino_(ino), instance_(instance) {}

  /// What a request has come to.
  struct Tried {
    enum class What {
      granted,
      blocked_here,    ///< by `blocking`, of this client
      blocked_there,   ///< by `blocking`, of the client `by`
      leased_by_other  ///< `by` keeps the locks in its memory: ask it
    } what = What::granted;
    LockRequest blocking = {};
    /// granted: another client that has locks, too; 0: none is known.
    InstanceId by = {};
    /// granted: other clients have used the file's locks, and what is known of the file may be older than that: it is to
    /// be read anew, and `refreshed` called with this number. 0: it need not.
    std::uint64_t came = 0;
    bool owner_had_some = false;  ///< granted: where the lock lies
    bool dropped_some = false;    ///< a flock that is blocked has lost what its owner had, as on Linux
  };

  /// Grants it, unless a lock of another owner is in the way. 0 steps under the lease; else 1 write, after 1 read if
  /// others have come in between. `may_lease`: nobody elsewhere is known to wait. no_locks, stale, corrupt, fenced.
  Result<Tried> lock(const LockRequest& wanted, const ExpiredInstances& expired, bool may_lease) EXCLUDES(mutex_);
  /// What others had done by then is known.
  void refreshed(std::uint64_t came) EXCLUDES(mutex_);
  /// The same, and to drop one (LockType::none), where memory alone grants it; false: not here, or not at once. Never
  /// blocks: for the thread that receives requests.
  bool set_at_once(const LockRequest& wanted) EXCLUDES(mutex_);
  /// Whether it would: `granted`, or what is in the way. 1 read without the lease.
  Result<Tried> find(const LockRequest& wanted, const ExpiredInstances& expired) EXCLUDES(mutex_);
  /// Drops what `what` drops of the table: memory first, then 1 write if it is stored. Answers whether there was any;
  /// no_locks: more pieces would be left than can be kept, and nothing is dropped. What the store could not do is done
  /// with the next step, or when another client asks.
  Result<bool> drop(const std::function<void(LockTable&)>& what) EXCLUDES(mutex_);
  /// As the table does. Waits for a step that is under way.
  void disown(HandleId handle, std::optional<std::uint64_t> owner, std::uint64_t nobody) EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    table_.disown(handle, owner, nobody);
  }
  /// Another client asks: what memory has is stored, and what was dropped is gone.
  Result<> share() EXCLUDES(mutex_);
  /// Whether somebody here has a lock. Never blocks.
  bool is_held() const { return is_held_.load(); }
  /// Whether that client has locks here, or the lease. 1 read.
  Result<bool> is_used_by(InstanceId other) EXCLUDES(mutex_);

 private:
  /// Read-only instances store nothing, nor may volumes hold what is not among their features.
  bool are_local() const;
  bool is_leased() const REQUIRES(mutex_);
  Result<> learn() REQUIRES(mutex_);
  std::optional<Tried> in_the_way(const LockRequest& wanted, const ExpiredInstances& expired) const REQUIRES(mutex_);
  std::vector<std::string> void_keys(const ExpiredInstances& expired) const REQUIRES(mutex_);
  bool is_alone(const ExpiredInstances& expired) const REQUIRES(mutex_);
  Result<Tried> lock_now(const LockRequest& wanted, const ExpiredInstances& expired, bool may_lease) REQUIRES(mutex_);
  void forget_dead(const ExpiredInstances& expired) REQUIRES(mutex_);
  Result<bool> lease(const ExpiredInstances& expired) REQUIRES(mutex_);
  Result<bool> store_lock(const LockRequest& wanted, const ExpiredInstances& expired) REQUIRES(mutex_);
  Result<bool> store_less(LockTable less) REQUIRES(mutex_);
  Result<bool> store_more(std::vector<format::LocksRecord::Lock> locks, const ExpiredInstances& expired)
      REQUIRES(mutex_);
  Result<bool> applied(MetaTxn txn) REQUIRES(mutex_);
  void now(format::LockStateRecord state, Bytes stored) REQUIRES(mutex_);
  Tried granted(const LockRequest& wanted) REQUIRES(mutex_);
  bool has_room_for(const LockRequest& wanted) const REQUIRES(mutex_);
  Result<> store_what_is_left() REQUIRES(mutex_);

  const Ino ino_;
  Instance& instance_;
  std::atomic<bool> is_used_ = false, is_held_ = false;
  Mutex mutex_;  // held until the store answers: one step in flight
  LockTable table_ GUARDED_BY(mutex_);
  /// As of the last read or own step; nullopt: not known.
  std::optional<Bytes> state_ GUARDED_BY(mutex_);
  std::optional<format::LockStateRecord> decoded_ GUARDED_BY(mutex_);
  std::map<InstanceId, format::LocksRecord> others_ GUARDED_BY(mutex_);
  Bytes stored_ GUARDED_BY(mutex_);  // the own key's value; empty: there is none
  unsigned own_in_a_row_ GUARDED_BY(mutex_) = 0;
  /// How often other clients were seen to have come, and as of which time the file was read anew.
  std::uint64_t came_ GUARDED_BY(mutex_) = 0, seen_ GUARDED_BY(mutex_) = 0;
};

}  // namespace lccfs
