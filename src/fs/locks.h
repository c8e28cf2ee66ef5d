// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Requests for locks of files: those that have to wait, and the other clients that are in their way (docs/LOCKS.md
// sections 3 to 5). A request that waits is an entry of a list, and has no thread. Any thread; nothing blocks, but
// where it says so.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <variant>

#include "base/mutex.h"
#include "base/tasks.h"
#include "base/thread_pool.h"
#include "fs/lease_holders.h"
#include "fs/open_files.h"
#include "fs/wanted_locks.h"

namespace lccfs {

class Locks {
 public:
  /// Reads the inode as an open does, before a lock is granted that others have had; blocks, also on other clients,
  /// until a stop is requested.
  using Refresh = std::function<Result<>(FileNode&, const std::stop_token& stop)>;
  Locks(Instance& instance, OpenFiles& files, LeaseHolders& holders, Refresh refresh)
      : instance_(instance), files_(files), holders_(holders), refresh_(std::move(refresh)) {}
  ~Locks() { end(); }
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;

  // -- lccfs/file_system.h
  void set(const LockRequest& request, FileSystem::LockDone done);
  void find(const LockRequest& request, FileSystem::FindLockDone done);
  void interrupt(std::uint64_t ticket) EXCLUDES(mutex_);
  void interrupt_all() EXCLUDES(mutex_);
  /// Both block on the store.
  void drop_range_locks(HandleId handle, std::uint64_t owner);
  void disown(HandleId handle, std::optional<std::uint64_t> owner, std::uint64_t nobody);
  void drop(HandleId handle);
  /// To be called about once a second: what waits is tried again.
  void tick();
  std::size_t waiting() const EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    return waits_.size();
  }

  // -- what other clients say
  /// That one waits for locks of this file.
  void is_wanted(Ino ino, InstanceId asker) { wanted_.add(ino, asker); }
  /// Another client has dropped some. false: nobody waits for them here any more.
  bool changed(Ino ino, InstanceId there) EXCLUDES(mutex_);

  /// All that wait are interrupted; returns when nothing of this is under way any more.
  void end();

 private:
  using Use = OpenFiles::Use;
  using Done = std::variant<FileSystem::LockDone, FileSystem::FindLockDone>;
  using Tried = FileLocks::Tried;
  struct Wait {
    LockRequest request;
    Done done;
    Use node;
    bool is_tried = true;  // by a thread
    bool is_woken = false;
    bool is_refreshing = false;  // it is granted; what others have done is being read, without that thread
    bool is_answered = false;
    bool waits_for_look = false;
    std::optional<std::uint64_t> blocked_by = std::nullopt;  // an owner of this client
    std::optional<std::chrono::nanoseconds> give_up_at = std::nullopt;
    bool outlasts_silence = false;  // if it may not wait: it is refused once the client in its way was heard
    std::chrono::nanoseconds began{};
    std::set<InstanceId> heard{};  // who has answered about this file since
    bool only_asks() const { return std::holds_alternative<FileSystem::FindLockDone>(done); }
  };
  using WaitRef = std::shared_ptr<Wait>;
  /// Another client that is in the way is asked until it answers, or has expired.
  struct Pursuit {
    bool is_under_way = false;
    std::chrono::nanoseconds began{};
    std::optional<std::chrono::nanoseconds> ended = std::nullopt;
    bool has_failed = false;
    bool is_told = false;  // it tells when locks of that file are dropped
  };
  static constexpr Ino everywhere{};

  void begin(const LockRequest& request, Done done);
  bool begin_wait(const WaitRef& wait) EXCLUDES(mutex_);
  void unlock(const WaitRef& wait);
  Error waited_in_vain() const;
  void try_until_it_waits(const WaitRef& wait);
  bool begin_try(const WaitRef& wait) EXCLUDES(mutex_);
  bool must_wait(const WaitRef& wait, const Tried& tried);
  bool must_wait_here(const WaitRef& wait, const Tried& tried) EXCLUDES(mutex_);
  bool must_wait_for_other(const WaitRef& wait, const Tried& tried) EXCLUDES(mutex_);
  bool must_outlast(const WaitRef& wait, const Tried& tried) EXCLUDES(mutex_);
  bool would_wait_for_itself(std::uint64_t owner, std::uint64_t blocking) const REQUIRES(mutex_);
  /// false: it was answered.
  bool is_in_vain(const WaitRef& wait);
  /// An earlier request of the same owner for some of these bytes is being tried, or not through with its look. It may be
  /// given up, and drops its lock in the end: this one's, too.
  bool is_being_looked_for(const WaitRef& wait) const REQUIRES(mutex_);
  bool may_be_at_once(const WaitRef& wait) EXCLUDES(mutex_);
  /// false: it has to wait for such a request.
  bool begin_look(const WaitRef& wait) EXCLUDES(mutex_);
  bool must_wait_for_look(const WaitRef& wait);
  void look_has_ended(const WaitRef& wait) EXCLUDES(mutex_);
  void granted(const WaitRef& wait, const Tried& tried);
  void look_must_end(Wait& wait) REQUIRES(mutex_);
  void granted_at_last(const WaitRef& wait, const Tried& granted);
  void take_back(const WaitRef& wait, const Tried& granted);
  void refresh(const WaitRef& wait, const Tried& granted, std::uint64_t number);
  void wait_for_others_of(Ino ino, std::uint64_t number) EXCLUDES(mutex_);
  void refuse(const WaitRef& wait, const Tried& tried);
  void interrupt_where(const std::function<bool(const Wait&)>& which);
  /// false: it was answered before.
  bool answer(const WaitRef& wait, Result<std::optional<LockHeld>> result) EXCLUDES(mutex_);
  void finish(const WaitRef& wait, Result<std::optional<LockHeld>> result) EXCLUDES(mutex_);
  void wake(Ino ino) EXCLUDES(mutex_);
  void wake_where(const std::function<bool(const Wait&)>& which) EXCLUDES(mutex_);
  void dropped(Ino ino);
  Result<> drop_of(FileNode& node, const std::function<void(LockTable&)>& what);
  bool was_heard_within(std::chrono::nanoseconds span, InstanceId other) EXCLUDES(mutex_);
  void look_after(InstanceId other, const Use& node);
  /// A client that answered within the last second is asked again only where that is needed.
  enum class Ask {
    unless_lately,
    to_be_told,  ///< unless it tells when locks of the file are dropped
    now,
  };
  Pursuit pursue(InstanceId other, const Use& node, Ask ask) EXCLUDES(mutex_);
  void pursue_now(InstanceId other, FileNode& node);
  void was_heard(InstanceId other, const FileNode& node) REQUIRES(mutex_);

  Instance& instance_;
  OpenFiles& files_;
  LeaseHolders& holders_;
  const Refresh refresh_;
  ExpiredInstances expired_;
  std::stop_source stop_;              // of what waits for other clients
  std::atomic<bool> all_end_ = false;  // the waits that there are, and those to come: not by a signal
  mutable Mutex mutex_;
  std::list<WaitRef> waits_ GUARDED_BY(mutex_);                   // in the order in which they came
  std::set<std::uint64_t> interrupted_early_ GUARDED_BY(mutex_);  // tickets
  std::map<std::pair<InstanceId, Ino>, Pursuit> pursuits_ GUARDED_BY(mutex_);
  std::map<InstanceId, std::chrono::nanoseconds> heard_ GUARDED_BY(mutex_);
  std::list<WaitRef> looks_
      GUARDED_BY(mutex_);  // tried, or granted and not for good yet, whether answered meanwhile or not
  std::map<Ino, std::set<std::uint64_t>> refreshes_ GUARDED_BY(mutex_);  // under way
  std::uint64_t last_refresh_ GUARDED_BY(mutex_) = 0;
  std::condition_variable refreshed_;
  WantedLocks wanted_{instance_, tasks_};
  ThreadPool threads_;  // last: its threads use all of this. They wait for other clients, as no others of this mount do
  Tasks tasks_{threads_};
};

}  // namespace lccfs
