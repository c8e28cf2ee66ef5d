// SPDX-License-Identifier: LGPL-2.1-or-later
//
// One regular file that is open or leased here: its lease, and what memory knows of it (docs/ORDERING.md section 7).
//
// Locks, in this order: the gate; `lease_mutex`, held over the store's answer by whoever takes or gives back the lease
// or stores size, times or map bits (one such step in flight per inode; never taken on a completion or by the thread
// that receives requests); `mutex`, never held over a call.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "fs/inode_view.h"
#include "fs/io_gate.h"
#include "txn/file_txn.h"

namespace lccfs {

struct FileNode {
  explicit FileNode(Ino inode) : ino(inode) {}

  const Ino ino;
  IoGate gate;
  std::mutex lease_mutex;

  mutable std::mutex mutex;  // guards all below
  bool lease_held = false;
  /// With the lease: the truth about size, times and map. Without: the inode as it was last read; ino 0: not read yet.
  InodeView view;
  /// Mode, owner and flags change without the lease: as of which version, and as of when, they are known here.
  std::uint64_t attr_version = 0;
  std::chrono::nanoseconds attr_sent{0};
  bool size_dirty = false, times_dirty = false;
  std::set<std::uint64_t> dirty_map_blocks;
  std::optional<std::chrono::nanoseconds> dirty_since;
  bool is_storing = false;  // what was dirty is on its way
  /// A failed write may have left bytes past the size: to be cut before anything else.
  bool tail_is_dirty = false;
  std::uint64_t last_write_end = 0;  // where a sequential writer goes on
  unsigned handles = 0, writers = 0;
  unsigned openings = 0;         // opens that have begun: they are going to read the inode
  bool store_is_posted = false;  // the five-second store is in line or under way

  /// The inode was read anew: without the lease, the newest read is what is known of it.
  void learn(InodeView read);

  // -- to be called with `mutex` held
  /// Versions order what is read and what is changed here; times of two clients' clocks do not.
  void learn_attr(const InodeView& newest);
  /// All of it, but for what is known here of a later version.
  void take(InodeView read);
  /// What fsync has to store; fdatasync without the times: it needs only what finds the data again.
  bool needs_store(bool with_times) const {
    return lease_held && (size_dirty || !dirty_map_blocks.empty() || (with_times && times_dirty));
  }
  bool dirty() const { return size_dirty || times_dirty || !dirty_map_blocks.empty(); }
  void mark_dirty(bool size, std::chrono::nanoseconds now) {
    size_dirty = size_dirty || size;
    times_dirty = true;
    if (!dirty_since) dirty_since = now;
  }
  /// What is dirty, which is then clean; until `stored`, somebody has it in flight.
  txn::FileChanges take_dirty(bool with_times);
  void stored() { is_storing = false; }
  /// The step that was to store them failed.
  void put_back(const txn::FileChanges& changes, std::chrono::nanoseconds now);
};

}  // namespace lccfs
