// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Reading and writing the bytes of one file (docs/ORDERING.md section 7). Never blocks the caller: what must wait for a
// lease, for map bits or for another client goes to the thread pool first; what need not is sent to the store at once,
// and answered from its completion.
#pragma once

#include <functional>
#include <memory>

#include "base/thread_pool.h"
#include "fs/file_node.h"
#include "fs/kernel_view.h"
#include "fs/write_lease.h"
#include "lccfs/file_system.h"

namespace lccfs {

class DataIo {
 public:
  /// `attributes_ttl`: how old a mode may be that says whether a user's write clears setuid.
  /// `page_threads` wait for the kernel's pages.
  DataIo(Instance& instance, ThreadPool& pool, WriteLease& lease, KernelView& kernel, ThreadPool& page_threads,
         std::chrono::nanoseconds attributes_ttl)
      : instance_(instance),
        pool_(pool),
        lease_(lease),
        kernel_(kernel),
        page_threads_(page_threads),
        attributes_ttl_(attributes_ttl) {}

  void read(std::shared_ptr<FileNode> node, std::uint64_t offset, std::span<char> target, FileSystem::ReadDone done);
  /// What of the kernel's holds the bytes of a write: its pages, or nothing of it.
  enum class Pages { written, passed_by };
  void write(std::shared_ptr<FileNode> node, WriteRequest request, Pages pages, FileSystem::WriteDone done);
  /// At the size then, alone.
  void append(std::shared_ptr<FileNode> node, WriteRequest request, Pages pages, FileSystem::WriteDone done);
  /// What a write, or a truncate, by this caller takes away: setuid and setgid bits, security.capability. Blocking.
  Result<> clear_privileges(FileNode& node, const Caller& caller);

 private:
  struct ReadOp;
  struct WriteOp;

  void begin_read(const std::shared_ptr<ReadOp>& op);
  void attempt_read(const std::shared_ptr<ReadOp>& op);
  void issue_read(const std::shared_ptr<ReadOp>& op);
  void read_returned(const std::shared_ptr<ReadOp>& op);
  void refresh_and_retry(const std::shared_ptr<ReadOp>& op);
  void finish_read(const std::shared_ptr<ReadOp>& op, Result<std::size_t> result);

  Result<std::size_t> append_alone(const std::shared_ptr<WriteOp>& op);
  void append_moved(const WriteOp& op);
  void begin_write(const std::shared_ptr<WriteOp>& op);
  static bool has_dirty_tail(const WriteOp& op);
  Result<> clean_tail_alone(FileNode& node);
  void clean_up_and_begin_again(const std::shared_ptr<WriteOp>& op);
  bool ready_to_write(const WriteOp& op) const;
  Result<> prepare_write(const WriteOp& op);
  // Of the mode and flags in memory; the caller holds the node's mutex.
  bool knows_privileges(const FileNode& node, const Caller& caller) const;
  bool has_no_privileges(const FileNode& node, const Caller& caller) const;
  void issue_write(const std::shared_ptr<WriteOp>& op);
  void write_returned(const std::shared_ptr<WriteOp>& op);
  void note_written(const WriteOp& op);
  static bool must_store(const WriteOp& op);
  Result<std::size_t> store_written(const WriteOp& op);
  void clean_up_failed_write(const std::shared_ptr<WriteOp>& op);
  void finish_write(const std::shared_ptr<WriteOp>& op, Result<std::size_t> result);
  void answer_behind_pages(const std::shared_ptr<WriteOp>& op, Result<std::size_t> result);

  Instance& instance_;
  ThreadPool& pool_;
  WriteLease& lease_;
  KernelView& kernel_;
  ThreadPool& page_threads_;
  const std::chrono::nanoseconds attributes_ttl_;
};

}  // namespace lccfs
