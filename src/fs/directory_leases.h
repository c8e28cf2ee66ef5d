// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The leases of directories (docs/NAMES.md): the guard on each step on what a lease covers, when one is taken, and the
// leases of other clients, which stand in the way of an answer. Any thread; what answers a Result blocks on the store,
// and may wait for another client.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "fs/directory_activity.h"
#include "fs/held_directories.h"
#include "fs/inodes.h"
#include "fs/kernel_view.h"
#include "fs/name_log.h"
#include "txn/namespace_txn.h"

namespace lccfs {

class DirectoryLeases {
 public:
  /// Takes none on a volume without that feature; the same of names behind.
  DirectoryLeases(Instance& instance, KernelView& kernel, const FileSystemOptions& options);
  ~DirectoryLeases() { wait(); }

  /// What is known of those that are held.
  HeldDirectories held;
  /// What was answered there, and is not stored yet.
  NameLog log;

  // -- leases of this client
  bool takes_leases() const { return after_changes_ != 0; }
  bool writes_behind() const { return writes_behind_; }
  /// An own step has changed it, or a lookup has read it. If nobody holds it, its lease is taken, if that was often
  /// enough lately: 1 write.
  void was_changed(Ino directory);
  void was_looked_up(const Inode& directory);
  /// Its names are about to be removed, many of them as it seems: from now on they go behind the answer, unless others use
  /// it, too. 1 write. Whether they do.
  bool begin_to_empty(Ino directory);
  /// Whether what is held may be answered from memory: Super has shown lately that this client is not fenced. A client
  /// that stood still may not know, and another may have what it believes to hold. Never blocks; has Super read.
  bool may_answer_from_memory();
  /// Whether the kernel may keep names of what is held here.
  bool gives_names() { return writes_behind_ && kernel_.can_keep_names(); }
  /// A name that the kernel keeps would take its time-out along to another directory. `stale`: it has to ask for the name
  /// first, as it then does (LOOKUP_REVAL).
  Result<> make_kernel_ask_before_move(const txn::Name& name);
  /// The same before a step on these names, where other clients can see it in the store before it is answered here.
  Result<> make_kernel_ask_before_step(std::initializer_list<const txn::Name*> names);
  void forget_names_once_fenced();
  /// Releases some that were not used for long. Never blocks.
  void release_unused() EXCLUDES(mutex_);

  // -- steps and answers of this client
  /// Instance::run, and run_repeatable, of a step on what the directory's lease covers: refused while another client
  /// holds it. What was answered there before is stored first.
  Result<StepResult> run(MetaTxn step);
  /// The same of one that changes names there: refused, too, where the directory was removed here.
  Result<StepResult> run_on_names(Ino directory, MetaTxn step);
  Result<Applied> run_repeatable(MetaTxn step);
  /// `run`, and after a refusal `make_way`: the step may be tried again.
  Result<StepResult> run_or_make_way(Ino directory, MetaTxn step);
  /// Whether a step on that directory, as it was read, would not be refused for its lease.
  bool is_free_or_ours(const Inode& directory) const {
    const auto& tenure = directory.directory_lease;
    return !tenure || held.knows_of(directory.ino, *tenure);
  }
  /// Whether what was read of its names may not be what its holder has answered.
  bool has_answered_more(const Inode& directory) EXCLUDES(mutex_);
  /// Afterwards nobody holds it under the tenure that was read, in the way of our steps.
  Result<> make_way(const Inode& directory);
  /// After a refusal: the same of what stands there now.
  Result<> make_way(Ino directory);

  /// Hears of each directory that was released because another client has asked for it; must not block.
  using Recalled = std::function<void(Ino)>;
  /// Before there is one.
  void tell_of_recalls(Recalled tell) { recalled_ = std::move(tell); }

  // -- questions of others (docs/DATA.md section 3: answered at once, or nearly)
  format::Answer answer(const format::Question& question) EXCLUDES(mutex_);
  /// Returns when no release is under way any more.
  void wait() EXCLUDES(mutex_);

 private:
  /// A question joins a release as long as it has not ended: the lease that it was asked for is released by its end.
  struct Release {
    bool finished = false;
    bool succeeded = false;
  };
  /// Something that others do for a release.
  struct Work {
    Mutex mutex;
    std::condition_variable changed;
    bool is_done GUARDED_BY(mutex) = false;
  };
  /// As of when Super has shown this client's record live.
  struct Belief {
    std::atomic<std::chrono::nanoseconds> live_at{};
    std::atomic<bool> is_asking = false;
  };

  Result<MetaTxn> guarded(MetaTxn step);
  bool take(Ino directory, bool names_behind);
  bool announce_names_behind(Ino directory, Token tenure);
  void ask_super();
  Result<> settle(Ino directory, Token tenure);
  enum class Because { unused, asked };
  std::shared_ptr<Release> release(Ino directory, Because because) REQUIRES(mutex_);
  Result<> release_now(Ino directory, Because because);
  void make_kernel_ask(Ino directory);
  static bool may_be_lost(const Error& why, Because because) {
    return because == Because::asked && is_out_of_space(why);
  }
  Result<> store_log(Ino directory, Because because);
  Result<> store_attributes(Ino directory, Because because);
  std::shared_ptr<Work> begin_to_store_ctimes(Ino directory);
  static void end(Work& work);
  bool wait_for(Work& work, std::chrono::nanoseconds at_most);
  Result<bool> store_removal(Ino directory);
  void end(Ino directory, const Result<>& done) EXCLUDES(mutex_);

  Instance& instance_;
  KernelView& kernel_;
  const unsigned after_changes_;
  const bool writes_behind_;
  Recalled recalled_;
  std::atomic<bool> has_forgotten_names_ = false;                      // fenced
  const std::shared_ptr<Belief> belief_ = std::make_shared<Belief>();  // reads that are under way have it, too
  DirectoryActivity activity_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::map<Ino, std::shared_ptr<Release>> under_way_ GUARDED_BY(mutex_);
  std::set<InstanceId> expired_ GUARDED_BY(mutex_);  // holders that were found so, fences synced: it is final
  unsigned waiting_ GUARDED_BY(mutex_) = 0;          // question threads
  ThreadPool kernel_threads_;                        // they wait for the kernel
  ThreadPool threads_;                               // last: they use all of this
};

}  // namespace lccfs
