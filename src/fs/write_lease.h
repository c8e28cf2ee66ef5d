// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The write lease of a file: taking it, taking it over, giving it back, and storing what its holder keeps in memory
// (docs/ORDERING.md section 7; the step tables are on top of write_lease.cpp). Blocking.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <set>

#include "base/thread_pool.h"
#include "fs/file_node.h"
#include "fs/kernel_view.h"

namespace lccfs {

class WriteLease {
 public:
  WriteLease(Instance& instance, KernelView& kernel) : instance_(instance), kernel_(kernel) {}

  /// Makes the lease ours. The caller holds the node's lease_mutex, and is in its gate.
  Result<> ensure(FileNode& node);

  /// Takes notice of a lease that the store says is ours, where memory does not know. The caller is alone in the gate.
  Result<> find_own(FileNode& node);

  /// Takes over the lease of an instance that is over, unless somebody else has: the tail is cut. As `ensure`.
  Result<> clean_up_behind(FileNode& node, InstanceId holder);

  /// Stores what is dirty and gives the lease back; nothing if it is not ours. The caller is alone in the gate.
  Result<> give_back(FileNode& node);

  /// Stores size, times and believed map bits if they are dirty. 0 steps if not.
  Result<> store_dirty(FileNode& node, bool with_times);
  /// The same; the caller holds lease_mutex.
  Result<> store_dirty_now(FileNode& node, bool with_times);

  /// Marks data objects as "may exist" and, those `written`, as believed there: before they are written to. The caller
  /// holds lease_mutex and the lease.
  Result<> map_objects(FileNode& node, ObjectIndex first, std::uint64_t count, std::uint64_t ahead);

  /// Cuts the boundary object at `size_bytes` and removes every mapped object past it. The caller is alone in the gate
  /// and holds lease_mutex.
  Result<> cut_data(FileNode& node, std::uint64_t size_bytes);

  /// Cuts what a failed write may have left past the size. As above.
  Result<> clean_tail(FileNode& node);

  enum class Ask {
    nobody,
    for_attributes,  ///< the answer may be what is stored: a holder that is silent or absent is not waited for
    for_reading,     ///< until it has answered, or is over
    for_opening,     ///< the same
  };
  /// The inode read anew. Asked, another who holds the lease stores size and times first.
  Result<InodeView> read_current(Ino ino, Ask ask);

  /// A change of size upwards, or of times, of a file whose lease nobody here needs longer: 1 read, 1 step.
  Result<InodeView> change_unleased(Ino ino, const std::function<txn::FileChanges(const InodeView&)>& change);

 private:
  enum class Holder { answered, over };
  Result<Holder> settle_holder(InstanceId holder, const format::Question& question);
  Result<> ask_briefly(InstanceId holder, const format::Question& question);
  enum class Heard { done, busy, over, nothing };
  Result<Heard> ask_once_briefly(InstanceId holder, const format::Question& question);
  Result<Heard> ask_for(std::chrono::nanoseconds at_most, InstanceId holder, const format::Question& question);
  bool was_silent_just_now(InstanceId holder);
  void note_silence(InstanceId holder);
  enum class Tail { clean, unclean };
  /// `since_version`: nobody has changed the bytes since then; 0: not known.
  Result<> adopt(FileNode& node, InodeView view, Tail tail, std::uint64_t since_version = 0);
  Result<> change_leased(FileNode& node, const txn::FileChanges& changes);

  Instance& instance_;
  KernelView& kernel_;
  std::mutex silent_mutex_;  // guards until when a silent holder is not asked for attributes, and who is being asked
  std::map<InstanceId, std::chrono::nanoseconds> silent_until_;
  std::multiset<InstanceId> still_asked_;  // by those who went on without an answer
  ThreadPool brief_questions_;             // last: its threads use all of this
};

}  // namespace lccfs
