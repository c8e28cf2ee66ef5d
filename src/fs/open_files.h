// SPDX-License-Identifier: LGPL-2.1-or-later
// The tables of the files that are open or leased here, and of their handles. Any thread; nothing blocks.
#pragma once

#include <fcntl.h>

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "fs/file_node.h"
#include "lccfs/file_system.h"

namespace lccfs {

inline bool for_writing(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

/// Appends that are not for mapping, too: through pages the kernel would split one where a page is not up to date, and
/// another client's append would come in between.
inline bool bypasses_pages(int flags) {
  return (flags & O_DIRECT) != 0 || (flags & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND);
}

/// Then it counts for the kernel's pages from the first read on that fills one.
inline bool may_be_mapped_directly(int flags) { return bypasses_pages(flags) && (flags & O_ACCMODE) != O_WRONLY; }

struct FileHandle {
  std::shared_ptr<FileNode> node;
  int flags = 0;
  bool uses_pages = true;         // the kernel's: for buffered reads and writes, or for a mapping
  std::uint64_t errors_told = 0;  // as of which of the file's late errors
};

class OpenFiles {
 public:
  OpenFiles(Instance& instance, LeaseHolders& holders, KernelView& kernel, std::shared_ptr<DirtyRoom> room)
      : instance_(instance), holders_(holders), kernel_(kernel), room_(std::move(room)) {}

  /// Where the nodes tell of files that are stored.
  Exchangeable<FileNode::StoredHandler> stored_handler;

  using Node = std::shared_ptr<FileNode>;
  /// Made if there is none. To be followed by let_go.
  Node node(Ino ino);
  Node existing(Ino ino) const;
  std::vector<Node> all() const;
  /// Forgets the node unless it is open, leased, or in use by another thread.
  void let_go(Node&& node);

  HandleId add(const Node& node, int flags);
  std::optional<FileHandle> handle(HandleId id) const;
  /// The kernel uses its pages for this handle, whatever its flags.
  void is_mapped(HandleId id);
  enum class Told { once, is_repeated };
  /// Why a write that was answered could not be stored since this handle was opened, or was last told once. One that
  /// nobody was told of is told to the next that opens the file, too.
  Result<> late_error(HandleId id, Told told);
  /// Sets what this knows of them: files, handles, leases.
  void count(MountCounts& counts) const;
  /// The node to let go of; nullptr: no such handle.
  Node drop(HandleId id);

 private:
  Instance& instance_;
  LeaseHolders& holders_;
  KernelView& kernel_;
  const std::shared_ptr<DirtyRoom> room_;
  mutable Mutex mutex_;
  std::unordered_map<Ino, Node> nodes_ GUARDED_BY(mutex_);
  std::map<HandleId, FileHandle> handles_ GUARDED_BY(mutex_);
  std::uint64_t next_handle_ GUARDED_BY(mutex_) = 1;
};

}  // namespace lccfs
