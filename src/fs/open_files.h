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
  /// A node, or none, in use. At the end of its last use it is forgotten, unless it is open or leased. Each end takes the
  /// table's mutex.
  class Use {
   public:
    Use(OpenFiles& files, Node node) : files_(&files), node_(std::move(node)) {}
    Use(const Use&) = default;
    Use(Use&&) = default;
    ~Use() {
      if (node_) files_->let_go(node_);
    }
    Use& operator=(const Use&) = delete;
    explicit operator bool() const { return node_ != nullptr; }
    FileNode& operator*() const { return *node_; }
    FileNode* operator->() const { return node_.get(); }
    bool operator==(const Use&) const = default;

   private:
    friend OpenFiles;
    OpenFiles* files_;
    Node node_;
  };
  /// Made if there is none.
  Use use(Ino ino);
  Use use_existing(Ino ino);
  std::vector<Use> use_all();
  /// For a look at it, after which it stays as it is. nullptr: there is none.
  Node existing(Ino ino) const;

  HandleId add(const Use& node, int flags);
  std::optional<FileHandle> handle(HandleId id) const;
  /// The kernel uses its pages for this handle, whatever its flags.
  void is_mapped(HandleId id);
  enum class Told { once, is_repeated, nobody };
  /// Why a write that was answered could not be stored since this handle was opened, or was last told once. One that
  /// nobody was told of is told to the next that opens the file, too.
  Result<> late_error(HandleId id, Told told);
  /// Sets what this knows of them: files, handles, leases.
  void count(MountCounts& counts) const;
  /// Its node; none: no such handle.
  Use drop(HandleId id);

 private:
  void let_go(const Node& node);

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
