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
  bool size_dirty = false, times_dirty = false;
  std::set<std::uint64_t> dirty_map_blocks;
  std::optional<std::chrono::nanoseconds> dirty_since;
  /// A failed write may have left bytes past the size: to be cut before anything else.
  bool tail_is_dirty = false;
  std::uint64_t last_write_end = 0;  // where a sequential writer goes on
  unsigned handles = 0, writers = 0;
  unsigned openings = 0;         // opens that have begun: they are going to read the inode
  bool store_is_posted = false;  // the five-second store is in line or under way

  /// The inode was read anew: without the lease, the newest read is what is known of it.
  void learn(InodeView read) {
    const std::lock_guard lock(mutex);
    if (lease_held) {
      learn_attr(read);
    } else if (read.version > view.version) {
      view = std::move(read);
    }
  }

  // -- to be called with `mutex` held
  /// Mode, owner and flags change without the lease.
  void learn_attr(const InodeView& read) {
    if (read.ctime < view.ctime) return;
    view.attr = read.attr;
    view.attr_raw = read.attr_raw;
    view.ctime = read.ctime;
  }
  bool dirty() const { return size_dirty || times_dirty || !dirty_map_blocks.empty(); }
  void mark_dirty(bool size, std::chrono::nanoseconds now) {
    size_dirty = size_dirty || size;
    times_dirty = true;
    if (!dirty_since) dirty_since = now;
  }
  /// What is dirty, which is then clean.
  txn::FileChanges take_dirty(bool with_times) {
    txn::FileChanges changes;
    if (size_dirty) changes.size_bytes = view.size_bytes;
    if (with_times && times_dirty) {
      changes.atime = view.atime;
      changes.mtime = view.mtime;
      changes.wtime = view.wtime;
      times_dirty = false;
    }
    for (const auto block : dirty_map_blocks) changes.map_blocks[block] = view.map.blocks().at(block);
    size_dirty = false;
    dirty_map_blocks.clear();
    if (!dirty()) dirty_since.reset();
    return changes;
  }
  /// The step that was to store them failed.
  void put_back(const txn::FileChanges& changes, std::chrono::nanoseconds now) {
    size_dirty = size_dirty || changes.size_bytes.has_value();
    times_dirty = times_dirty || changes.wtime.has_value();
    for (const auto& [block, bits] : changes.map_blocks) dirty_map_blocks.insert(block);
    if (!dirty_since) dirty_since = now;
  }
};

}  // namespace lccfs
