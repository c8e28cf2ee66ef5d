// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regular files: handles, write leases, reads, writes, sizes and times (docs/ORDERING.md section 7). One FileNode per
// file that is open or leased here. Threads as in lccfs/file_system.h.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/thread_pool.h"
#include "fs/inode_view.h"
#include "instance/instance.h"
#include "lccfs/file_system.h"

namespace lccfs {

struct FileNode;

class Files {
 public:
  Files(Instance& instance, ThreadPool& pool, const FileSystemOptions& options);
  ~Files();

  // -- what the namespace operations use
  /// stat's answer for an inode just read: memory knows better while the lease is ours. TTL 0 while another holds it.
  AttributesReply reply_for(const InodeView& view);
  bool is_open(Ino ino) const;
  /// Also while an open is reading the inode: who begins before it dies, and after whom it is asked, has it open.
  bool is_open_or_opening(Ino ino) const;
  /// `attr` or ctime of this inode was changed by an operation of this client: open files see it at once.
  void attributes_changed(const InodeView& view);
  /// A file that create is about to give its name, born with its lease ours: from now on questions about it are
  /// answered. Followed by open_new, or by unborn if it gets no name.
  void born(const InodeView& view);
  void unborn(Ino ino);
  OpenReply open_new(const InodeView& view, int flags);

  // -- lccfs/file_system.h
  Result<AttributesReply> get_attributes(Ino ino);
  /// Size and times of a regular file (mode and owner are the namespace's).
  Result<AttributesReply> set_size_and_times(Ino ino, const SetAttributes& changes);
  Result<OpenReply> open(const Caller& caller, Ino ino, int flags);
  void is_mapped(HandleId handle);
  void read(HandleId handle, std::uint64_t offset, std::span<char> target, FileSystem::ReadDone done);
  void write(HandleId handle, WriteRequest request, FileSystem::WriteDone done);
  Result<> flush(HandleId handle);
  Result<> fsync(HandleId handle, bool data_only);
  void release(HandleId handle);
  void forget(Ino ino);
  void tick();
  void set_kernel_cache(KernelCache* cache);
  Result<> give_back_everything();
  /// Other instances get no answer from now on; what they have asked for is done when it returns.
  void stop_answering();
  /// security.capability of an open file from memory: nullopt if it is not open here, or memory too old (ask the
  /// store).
  std::optional<bool> has_capability(Ino ino) const;

 private:
  struct Private;
  Result<> empty(const Caller& caller, FileNode& node);
  Result<AttributesReply> change_node(FileNode& node, const SetAttributes& changes);
  Result<OpenReply> open_node(const Caller& caller, const std::shared_ptr<FileNode>& node, int flags);

  std::unique_ptr<Private> private_;
};

}  // namespace lccfs
