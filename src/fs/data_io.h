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
#include "fs/write_lease.h"
#include "lccfs/file_system.h"

namespace lccfs {

class DataIo {
 public:
  /// Told of every append that did not land where the kernel believed.
  using AppendMoved = std::function<void(Ino)>;

  DataIo(Instance& instance, ThreadPool& pool, WriteLease& lease, AppendMoved append_moved)
      : instance_(instance), pool_(pool), lease_(lease), append_moved_(std::move(append_moved)) {}

  void read(std::shared_ptr<FileNode> node, std::uint64_t offset, std::span<char> target, FileSystem::ReadDone done);
  void write(const Caller& caller, std::shared_ptr<FileNode> node, std::uint64_t offset, SharedBytes bytes,
             FileSystem::WriteDone done);
  /// At the size then, alone; `believed_offset` is the kernel's.
  void append(const Caller& caller, std::shared_ptr<FileNode> node, std::uint64_t believed_offset, SharedBytes bytes,
              FileSystem::WriteDone done);

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
  void begin_write(const std::shared_ptr<WriteOp>& op);
  static bool has_dirty_tail(const WriteOp& op);
  Result<> clean_tail_alone(FileNode& node);
  void clean_up_and_begin_again(const std::shared_ptr<WriteOp>& op);
  bool ready_to_write(const WriteOp& op) const;
  Result<> prepare_write(const WriteOp& op);
  Result<> clear_privileges(const WriteOp& op);
  void issue_write(const std::shared_ptr<WriteOp>& op);
  void write_returned(const std::shared_ptr<WriteOp>& op);
  void note_written(const WriteOp& op);
  void clean_up_failed_write(const std::shared_ptr<WriteOp>& op);

  Instance& instance_;
  ThreadPool& pool_;
  WriteLease& lease_;
  const AppendMoved append_moved_;
};

}  // namespace lccfs
