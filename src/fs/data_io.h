// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Reading and writing the bytes of one file (docs/DATA.md). Never blocks the caller: what must wait for a lease, for
// map bits or for another client goes to the file pool first; all else is sent to the store at once, and answered from
// its completion.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "fs/announcements.h"
#include "fs/file_node.h"
#include "fs/kernel_view.h"
#include "fs/lease_holders.h"
#include "lccfs/file_system.h"

namespace lccfs {

struct DataIo {
  Instance& instance;
  ThreadPool& pool;
  LeaseHolders& holders;
  KernelView& kernel;
  DirtyRoom& room;
  Announcements& announcements;
  /// How old a mode may be that says whether a user's write clears setuid.
  const std::chrono::nanoseconds attributes_ttl;

  using Node = std::shared_ptr<FileNode>;
  void read(Node node, std::uint64_t offset, std::span<char> target, FileSystem::ReadDone done);
  /// What of the kernel's holds the bytes of a write: its pages, or nothing of it.
  enum class Pages { written, passed_by };
  void write(Node node, WriteRequest request, Pages pages, FileSystem::WriteDone done);
  /// At the size then, alone.
  void append(Node node, WriteRequest request, Pages pages, FileSystem::WriteDone done);
  /// Changes these bytes alone in the gate: `work` runs with the lease ours, nothing past the end, and the privileges
  /// gone that a write by this caller takes away. The kernel drops its pages where the call succeeds; where it fails,
  /// those of `changed` are dropped here, because bytes may have changed: with what `work` changes, what the call has
  /// changed before. Blocking.
  Result<> change_alone(FileNode& node, const Caller& caller, ByteRange changed, const std::function<Result<>()>& work);
  /// The kernel's pages of these bytes. Blocking.
  void drop_pages(const FileNode& node, ByteRange range);
  /// What a write, or a truncate, by this caller takes away: setuid and setgid bits, security.capability. Blocking.
  Result<> clear_privileges(FileNode& node, const Caller& caller);
  /// Whether memory knows that it takes nothing away.
  bool has_no_privileges(const FileNode& node, const Caller& caller) const REQUIRES(node.mutex);
  bool knows_privileges(const FileNode& node, const Caller& caller) const REQUIRES(node.mutex);
};

/// A request of which the store has parts: the last answer counts.
class PartsInFlight {
 public:
  void begin(std::size_t parts) { pending_ = parts; }
  void fail(Error why) EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    error_ = std::move(why);
  }
  /// One is through. Was it the last?
  bool end_one() { return pending_.fetch_sub(1) == 1; }
  std::optional<Error> error() EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    return error_;
  }

 private:
  std::atomic<std::size_t> pending_{0};
  Mutex mutex_;
  std::optional<Error> error_ GUARDED_BY(mutex_);
};

}  // namespace lccfs
