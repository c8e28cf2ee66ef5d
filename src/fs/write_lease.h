// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The write lease of a file: taking it, taking it over, giving it back, and storing what its holder keeps in memory
// (docs/ORDERING.md section 7; the step tables are on top of write_lease.cpp). Blocking.
#pragma once

#include "fs/file_node.h"

namespace lccfs {

class WriteLease {
 public:
  explicit WriteLease(Instance& instance) : instance_(instance) {}

  /// Makes the lease ours. The caller holds the node's lease_mutex, and is in its gate.
  Result<> ensure(FileNode& node);

  /// Takes notice of a lease that the store says is ours, where memory does not know. The caller is alone in the gate.
  Result<> find_own(FileNode& node);

  /// Stores what is dirty and gives the lease back; nothing if it is not ours. The caller is alone in the gate.
  Result<> give_back(FileNode& node);

  /// Stores size, times and believed map bits if they are dirty. 0 steps if not.
  Result<> store_dirty(FileNode& node, bool with_times);

  /// Marks data objects as "may exist" and, those `written`, as believed there: before they are written to. The caller
  /// holds lease_mutex and the lease.
  Result<> map_objects(FileNode& node, ObjectIndex first, std::uint64_t count, std::uint64_t ahead);

  /// Cuts the boundary object at `size_bytes` and removes every mapped object past it. The caller is alone in the gate
  /// and holds lease_mutex.
  Result<> cut_data(FileNode& node, std::uint64_t size_bytes);

  /// Cuts what a failed write may have left past the size. As above.
  Result<> clean_tail(FileNode& node);

  /// The inode read anew. With `ask`: if another holds the lease, it stores size and times first.
  Result<InodeView> read_current(Ino ino, bool ask, bool from_open);

  /// A change of size upwards, or of times, of a file whose lease nobody here needs longer: 1 read, 1 step.
  Result<InodeView> change_unleased(Ino ino, const std::function<txn::FileChanges(const InodeView&)>& change);

 private:
  enum class Holder { answered, over };
  Result<Holder> settle_holder(InstanceId holder, const format::Question& question);
  enum class Tail { clean, unclean };
  Result<> adopt(FileNode& node, InodeView view, Tail tail);
  Result<> change_leased(FileNode& node, const txn::FileChanges& changes);

  Instance& instance_;
};

}  // namespace lccfs
