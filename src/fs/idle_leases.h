// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Leases of files that nobody has open for writing any more. A close does not wait: the lease, and what is dirty under
// it, stay for some seconds. Then they are stored and released in the background, many at a time (docs/DATA.md section
// 3). Another client that opens, stats or lists the file asks for it meanwhile (recalls.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "fs/open_files.h"

namespace lccfs {

class IdleLeases {
 public:
  using Done = std::move_only_function<void()>;

  /// At most about `limit` are kept. 0: each close stores and releases.
  IdleLeases(OpenFiles& files, Instance& instance, DirtyRoom& room, unsigned limit)
      : files_(files), instance_(instance), room_(room), limit_(limit), releases_(most_releases) {}

  /// Whether a close need not store and release: not where another client uses the file, where bytes cannot be stored,
  /// where the volume is nearly full, nor where many are kept already. Any thread; nothing blocks.
  bool may_keep(const FileNode& node) const;
  /// The same; the lease is idle from now on.
  bool keep(FileNode& node);
  /// The last close could not store it: the bytes are kept, and tried again, for a minute. false: they are not.
  bool keep_unstored(FileNode& node);
  /// Sees to an idle lease: begins to release it when it is time. false: it is none, or what is dirty is to be stored
  /// before its release has its turn. Any thread; nothing blocks.
  bool see_to(const OpenFiles::Use& node);
  /// A new look at all of them begins, by see_to.
  void begin_count() { kept_ = 0; }
  /// Begins to release it now, if it is idle. Any thread; nothing blocks.
  void release_soon(const OpenFiles::Use& node) { begin_release(node, instance_.clock().elapsed()); }
  /// After the last close: begins to release it where many are kept. So whoever makes one file after the other keeps the
  /// store busy from the beginning, and does not come to wait for it at the limit. Any thread; nothing blocks.
  void release_if_many(const OpenFiles::Use& node);
  /// Of these inodes, which the store is about to get, those that are new files and closed are released, so that one step
  /// makes them as they are. Small ones are written first. `done` comes after that, on any thread; nothing blocks. One
  /// that is in use, cannot be written, or is not written within a second, keeps its lease.
  void finish_new(std::span<const Ino> inodes, Done done);
  /// For those that are not written within a second. To be called each second.
  void stop_waiting();
  /// Releases all leases, whether idle or not, though bytes may be lost that cannot be stored. Blocks.
  Result<> release_all();

 private:
  /// Each may wait for an object that does not answer. If all do, other idle leases are released only when another
  /// client asks for them.
  static constexpr unsigned most_releases = 32;
  /// An eighth of the limit, or a little more.
  unsigned kept_at_leisure() const { return limit_ - limit_ / 8 * 7; }

  bool may_finish(const FileNode& node) const;
  /// A new file whose bytes are awaited.
  struct Awaited {
    std::chrono::nanoseconds since{0};
    std::shared_ptr<const void> others;  // with the last one, `done` is called
    OpenFiles::Use node;                 // ends before that: the table may end with `done`
  };
  /// A completion that comes after `stop_waiting` may outlive all of this.
  struct AllAwaited {
    Mutex mutex;
    std::map<std::uint64_t, Awaited> by_number GUARDED_BY(mutex) = {};
    std::uint64_t last GUARDED_BY(mutex) = 0;
  };

  bool is_written_first(const FileNode& node) const;
  void finish_written(OpenFiles::Use node, std::shared_ptr<const void> others);
  void finish(FileNode& node);
  void begin_release(const OpenFiles::Use& node, std::chrono::nanoseconds idle_until);
  bool release(FileNode& node);
  bool discard_if_lost(FileNode& node);
  bool is_removed(FileNode& node);
  void not_released(FileNode& node, const Error& why);
  void one_less();

  OpenFiles& files_;
  Instance& instance_;
  DirtyRoom& room_;
  const unsigned limit_;
  const std::shared_ptr<AllAwaited> awaited_ = std::make_shared<AllAwaited>();
  std::atomic<unsigned> kept_ = 0;  // about so many: at the last look, and since
  ThreadPool releases_;             // last: its threads use all of this
};

}  // namespace lccfs
