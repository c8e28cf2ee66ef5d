// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The leases of directories (docs/NAMES.md): the guard on each step on what a lease covers, and the leases of other
// clients, which stand in the way of an answer. Any thread; what answers a Result blocks on the store, and may wait for
// another client.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <span>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "fs/inodes.h"
#include "txn/namespace_txn.h"

namespace lccfs {

class DirectoryLeases {
 public:
  explicit DirectoryLeases(Instance& instance) : instance_(instance) {}
  ~DirectoryLeases() { wait(); }

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

  MetaTxn guarded(MetaTxn step) const { return txn::under_lease(std::move(step), std::nullopt); }
  Result<> settle_own(Ino directory, Token tenure);
  Result<> release_as_asked(Ino directory);
  void end(Ino directory, const Result<>& done) EXCLUDES(mutex_);

  Instance& instance_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::map<Ino, std::shared_ptr<Recall>> under_way_ GUARDED_BY(mutex_);
  unsigned waiting_ GUARDED_BY(mutex_) = 0;  // question threads
  ThreadPool threads_;                       // last: they use all of this
};

}  // namespace lccfs
