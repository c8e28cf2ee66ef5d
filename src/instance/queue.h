// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The producers' half of the reclaim queue (docs/PROTOCOL.md section 5): a log in the own session object, and the inode
// numbers that its range intents cover. Any thread; what returns a Result blocks on the store, and each append is one
// write, durable when it returns.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/completions.h"
#include "base/mutex.h"
#include "format/records.h"
#include "instance/numbers.h"
#include "instance/steps.h"
#include "lccfs/clock.h"
#include "txn/volume_txn.h"

namespace lccfs {

/// Takes the next so many numbers of the volume, and answers the first.
Result<std::uint64_t> take_numbers(Steps& steps, std::uint64_t count);

class OwnQueue {
 public:
  OwnQueue(Steps& steps, Numbers& numbers, Clock& clock, const InstanceId& me)
      : steps_(steps), numbers_(numbers), clock_(clock), me_(me) {}
  ~OwnQueue() { in_flight_.wait(); }
  OwnQueue(const OwnQueue&) = delete;
  OwnQueue& operator=(const OwnQueue&) = delete;

  Result<> log_items(const std::vector<format::QueueItem>& items);
  /// Logs the directory item unless one is relied on already. Good for as long as the caller's Operation lives.
  Result<> rely_on_directory(Ino directory);
  void rely_on_directory_async(Ino directory, ObjectStore::DataDone done);
  /// The item that link needs.
  Result<> log_inode(Ino inode) { return log_items({item(format::QueueItem::Kind::inode, inode)}); }
  /// The items that rmdir, a replacing rename of a directory and a rename across directories need, in one write: inode
  /// item, and of the directories those that are not relied on already. Good for as long as the caller's Operation
  /// lives.
  Result<> log_inode_and_directories(Ino inode, std::span<const Ino> directories);
  /// This instance has removed it: the step numbers in it go with it, and those in others are not forgotten for its
  /// sake.
  void directory_is_gone(Ino directory) EXCLUDES(mutex_);

  /// Drops all directory items: the next operation there logs anew. Those on which something that runs relies hold
  /// the answer back until it is through; used on, they would do so for ever. Answers the lowest number that is still
  /// running or relied on, or else the next one.
  std::uint64_t drop_directory_items() EXCLUDES(mutex_);

  /// From now on the numbers [first, first + count), just taken, are handed out: covers them by a range intent.
  Result<> begin_range(std::uint64_t first, std::uint64_t count) EXCLUDES(inos_mutex_, mutex_);
  /// A new inode number; covered by a range intent that is durable, until the caller's Operation ends. By
  /// then the number is unused, its inode is seen removed or has a name for certain, or it is left to the collector.
  Result<Ino> allocate_ino() EXCLUDES(inos_mutex_, mutex_);
  /// An inode of this instance's that may exist without a name.
  void leave_to_collector(Ino ino) EXCLUDES(mutex_);
  /// The same, for callers that must not block. Its range intent stays to the end, too: a collector may come to the item
  /// before the inode comes to the store.
  void leave_to_collector_async(Ino ino) EXCLUDES(mutex_);
  /// The same of one that is to go last: only its range intent stays. false: it is in no range of this instance's.
  bool keep_range_of(Ino ino) EXCLUDES(mutex_);

  // -- the clean end: nothing is in flight
  enum class Ranges { used_up, all };
  Result<> drop_range_intents(Ranges which) EXCLUDES(mutex_);
  /// Removes l/<me> from directories that were relied on at any time: once this is retired, it has no use. Not
  /// from all if they are very many, and from none that does not answer: a collector does that.
  Result<> remove_step_numbers() EXCLUDES(mutex_);
  Result<bool> is_empty();

 private:
  struct ReliedOn {
    std::uint64_t item = 0;       // its number in the queue
    std::uint64_t last_used = 0;  // the next number when an operation relied on it last
  };
  struct Range {
    std::uint64_t item = 0;  // its number in the queue
    Ino begin, end;
    std::optional<std::uint64_t> used_up;  // the next number when the last of it was handed out
    bool kept_to_the_end = false;          // some of it was handed out to no operation
    bool kept = false;                     // one of its inodes may have no name, and no item of its own
    bool covers(Ino ino) const { return begin <= ino && ino < end; }
  };

  format::QueueItem item(format::QueueItem::Kind kind, Ino ino, Ino end = {}) const {
    return {kind, ino, end, clock_.wall_time()};
  }
  void log_items_async(const std::vector<format::QueueItem>& items, ObjectStore::DataDone done);
  void log_later(format::QueueItem::Kind kind, Ino ino, ObjectStore::DataDone done) EXCLUDES(mutex_);
  void log_what_waits() EXCLUDES(mutex_);
  bool has_more_to_log() EXCLUDES(mutex_);
  void note_logged(const std::vector<txn::NumberedItem>& items) EXCLUDES(mutex_);
  bool already_relied_on(Ino directory) EXCLUDES(mutex_);
  Result<> begin_range_locked(std::uint64_t first, std::uint64_t count) REQUIRES(inos_mutex_) EXCLUDES(mutex_);
  void note_handed_out(Ino ino) EXCLUDES(mutex_);
  std::vector<Ino> that_answer(const std::set<Ino>& directories);

  Steps& steps_;
  Numbers& numbers_;
  Clock& clock_;
  const InstanceId& me_;

  Mutex inos_mutex_;  // held while new numbers are taken; before mutex_
  Ino next_ino_ GUARDED_BY(inos_mutex_), end_ino_ GUARDED_BY(inos_mutex_);

  Mutex mutex_;  // guards what stands in the queue; before that of Numbers
  std::vector<Range> ranges_ GUARDED_BY(mutex_);
  std::map<Ino, ReliedOn> relied_on_ GUARDED_BY(mutex_);
  std::vector<ReliedOn> dropped_items_ GUARDED_BY(mutex_);  // by a liveness poll, and perhaps still relied on
  std::set<Ino> directories_to_tidy_ GUARDED_BY(mutex_);
  struct ToBeLogged {
    format::QueueItem::Kind kind;
    Ino ino;
    ObjectStore::DataDone done;
  };
  std::vector<ToBeLogged> to_be_logged_ GUARDED_BY(mutex_);  // items that come next
  bool is_logging_ GUARDED_BY(mutex_) = false;               // some of these are on their way
  InFlight in_flight_;                                       // items that nobody waits for
};

}  // namespace lccfs
