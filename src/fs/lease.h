// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The lease of one inode object: taking it, taking it over from a holder that has expired, releasing it. What it covers
// is known to the class that derives from it: of a file size, times and map (file_node.h). The step tables are on top
// of lease.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "fs/inodes.h"
#include "fs/lease_holders.h"

namespace lccfs {

class Lease {
 public:
  Lease(Ino inode, Instance& instance, LeaseHolders& holders) : ino(inode), instance_(instance), holders_(holders) {}
  virtual ~Lease() = default;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const Ino ino;
  /// Held during a step that takes or releases the lease, or stores what it covers: one such step in flight per inode.
  /// Not for completions, nor for the thread that receives requests.
  Mutex step_mutex;
  mutable Mutex mutex;  // after step_mutex; held during no step
  bool lease_held GUARDED_BY(mutex) = false;
  /// A step that releases it was begun, and has not failed for certain: the store may have done it, and another client may
  /// hold the lease (docs/COUNTEREXAMPLES.md C33). Until it is taken anew, or `settle_release` has looked.
  bool may_be_released GUARDED_BY(mutex) = false;
  /// Another client had the present lease before, or has opened the file since: it may read what is stored at any time.
  bool is_shared GUARDED_BY(mutex) = false;

  bool held() const EXCLUDES(mutex) {
    const Lock lock(mutex);
    return lease_held;
  }

  /// Memory says that it is ours, and a release that was begun may have been done.
  bool is_in_doubt() const EXCLUDES(mutex) {
    const Lock lock(mutex);
    return lease_held && may_be_released;
  }
  /// After a release that failed: the inode tells whether it was done, before anything is done under the lease. 1 read
  /// where that is in doubt, else nothing.
  Result<> settle_release() EXCLUDES(step_mutex, mutex);

  /// Makes the lease ours. Another holder is asked for it.
  Result<> ensure() REQUIRES(step_mutex) EXCLUDES(mutex);
  /// Takes notice of a lease that the store says is ours, where memory does not know.
  Result<> find_own() EXCLUDES(step_mutex, mutex);
  /// Takes it over from that holder, unless another client has.
  Result<> take_over_from(InstanceId expired) EXCLUDES(step_mutex, mutex);
  /// Releases it; nothing if it is not ours. What it covers is not in use, nor will be before this returns.
  Result<> release() EXCLUDES(step_mutex, mutex);
  /// The same of an inode that was not sent to the store yet, if nobody is at work on its lease: else false. Never
  /// blocks: what it covers has no bytes to be stored.
  bool release_unsent() EXCLUDES(step_mutex, mutex);
  /// Another client has asked for the lease that was released just now, and is about to take it: the next `ensure` gives it
  /// an eighth of a second. Else a busy writer here would be the quicker one each time.
  void give_way() EXCLUDES(mutex);

 protected:
  /// The lease is ours in the store, and this is the inode. What it covers has not changed since that stamp. If the
  /// stamp is not known, the last holder may have left bytes past the end. From now on memory is the truth, unless this
  /// fails.
  virtual Result<> taken(Inode inode, const objects::BytesStamp& unchanged_since) REQUIRES(step_mutex)
      EXCLUDES(mutex) = 0;
  /// The step that stores what is still to be stored, and removes the lease. Of an inode that was not sent to the store
  /// yet, the step that creates it does all of that.
  virtual Result<MetaTxn> release_step() REQUIRES(step_mutex) EXCLUDES(mutex) = 0;
  /// It left the inode at that version. 0: it was not sent yet. nullopt: not known; perhaps an earlier run of the step did
  /// it, or another client has taken the lease over.
  virtual void released(std::optional<std::uint64_t> version) REQUIRES(step_mutex, mutex) = 0;

  /// As settle_release.
  Result<> settle_release_now() REQUIRES(step_mutex) EXCLUDES(mutex);
  /// Whether the step that creates the inode, and was not sent yet, does what this step would.
  bool is_part_of_creation(const MetaTxn& step) const;

  Instance& instance_;
  LeaseHolders& holders_;

 private:
  Result<Inode> read() const;
  std::optional<Token> next_taken(const Inode& read) const;
  bool leaves_it_to_asker(const Inode& read) EXCLUDES(mutex);
  Result<> take_over(InstanceId expired);
  Result<> adopt(Inode inode, const objects::BytesStamp& unchanged_since, bool was_recalled) REQUIRES(step_mutex)
      EXCLUDES(mutex);
  Result<> adopt_own() REQUIRES(step_mutex) EXCLUDES(mutex);
  Result<std::optional<std::uint64_t>> end_in_store() REQUIRES(step_mutex) EXCLUDES(mutex);
  void is_released(std::optional<std::uint64_t> version) REQUIRES(step_mutex) EXCLUDES(mutex);

  std::uint64_t released_at_ GUARDED_BY(mutex) = 0;            // the version that the last release left. 0: not known
  std::chrono::milliseconds next_pause_ GUARDED_BY(mutex){0};  // for who was given way. 0: nobody was
};

}  // namespace lccfs
