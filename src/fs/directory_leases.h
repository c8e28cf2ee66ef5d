// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The leases of directories (docs/NAMES.md): the guard on each step on what a lease covers, when one is taken, and the
// leases of other clients, which stand in the way of an answer. Any thread; what answers a Result blocks on the store,
// and may wait for another client.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <span>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "fs/directory_activity.h"
#include "fs/held_directories.h"
#include "fs/inodes.h"
#include "txn/namespace_txn.h"

namespace lccfs {

class DirectoryLeases {
 public:
  /// `after_changes`: how many changes of a directory within some seconds make it worth a lease; 0: none is taken.
  DirectoryLeases(Instance& instance, unsigned after_changes);
  ~DirectoryLeases() { wait(); }

  /// What is known of those that are held.
  HeldDirectories held;

  // -- leases of this client
  bool takes_leases() const { return after_changes_ != 0; }
  /// nullopt: it is not held here.
  std::optional<Token> tenure_of(Ino directory) const { return held.tenure_of(directory); }
  /// An own step has changed it, or a lookup has read it, which nobody holds; it was at that version then. Its lease is
  /// taken, if that was often enough lately: 1 write.
  void was_changed(Ino directory, std::uint64_t version);
  void was_looked_up(const Inode& directory);
  /// A step or a read of this client, sent then, was answered well: it was not fenced before.
  void heard_from_store(std::chrono::nanoseconds sent);
  /// Whether what is held may be answered from memory: not by a client that was fenced, nor by one that has heard
  /// nothing for seconds. It may have stood still, and another may have what it believes to hold.
  bool may_answer_from_memory() const;
  /// A directory that is gone, or that a collector is about to remove.
  void forget(Ino directory) { held.end(directory); }

  // -- steps and answers of this client
  /// Instance::run, and run_repeatable, of a step on what the directory's lease covers: refused while another client
  /// holds it.
  Result<StepResult> run(MetaTxn step) { return instance_.run(guarded(std::move(step))); }
  Result<Applied> run_repeatable(MetaTxn step) { return instance_.run_repeatable(guarded(std::move(step))); }
  /// `run`, and after a refusal `make_way`: the step may be tried again.
  Result<StepResult> run_or_make_way(Ino directory, MetaTxn step);
  /// Whether answers may rest on that read of a directory. false: another client held it, and does so no more: read
  /// again. `locked`: further directories that the kernel keeps locked for the same call. stale: one of them is asked
  /// for meanwhile, which waits for this call.
  Result<bool> may_answer_by(const Inode& directory, std::span<const Ino> locked = {});
  /// Of a second read, for an answer that rests on two: whether another client holds it.
  bool is_held_elsewhere(const Inode& directory) const {
    return directory.directory_lease && directory.directory_lease->instance != instance_.id();
  }
  /// After a refusal: no other client holds the directory any more.
  Result<> make_way(Ino directory);

  // -- questions of others (docs/DATA.md section 3: answered at once, or nearly)
  format::Answer answer(const format::Question& question) EXCLUDES(mutex_);
  /// Returns when nothing that was asked for is under way any more.
  void wait() EXCLUDES(mutex_);

 private:
  /// What was asked for. A question joins it as long as it has not ended: the lease that it was asked for is released
  /// by its end.
  struct Recall {
    bool finished = false;
    bool succeeded = false;
  };

  MetaTxn guarded(MetaTxn step) const;
  void take(Ino directory, std::uint64_t version);
  Result<> settle_own(Ino directory, Token tenure);
  Result<> release_as_asked(Ino directory);
  void end(Ino directory, const Result<>& done) EXCLUDES(mutex_);

  Instance& instance_;
  const unsigned after_changes_;
  std::atomic<std::chrono::nanoseconds> heard_{};
  DirectoryActivity activity_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::map<Ino, std::shared_ptr<Recall>> under_way_ GUARDED_BY(mutex_);
  unsigned waiting_ GUARDED_BY(mutex_) = 0;  // question threads
  ThreadPool threads_;                       // last: they use all of this
};

}  // namespace lccfs
