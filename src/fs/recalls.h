// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What other instances ask of the files that are leased here (docs/DATA.md section 3). A question is answered at
// once, or nearly: a holder that is silent for long is evicted. The work continues while the asker is told "busy".
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <tuple>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "fs/open_files.h"

namespace lccfs {

class Recalls {
 public:
  Recalls(Instance& instance, OpenFiles& files, KernelView& kernel)
      : instance_(instance), files_(files), kernel_(kernel) {}

  format::Answer answer(const format::Question& question);
  /// How often something was begun for another client.
  std::uint64_t begun() const { return begun_; }
  /// Returns when nothing that was asked for is under way any more.
  void wait() EXCLUDES(mutex_);

 private:
  /// What was asked for: it is under way, or waits for its turn.
  struct Recall {
    std::uint64_t number = 0;
    bool may_be_joined = true;  // not once it has looked at what there is to store: what was answered since is missing
    bool finished = false;
    bool succeeded = false;
    unsigned waiting = 0;  // threads of this instance's
  };
  /// Of one kind for one file.
  struct Line {
    std::shared_ptr<Recall> first, next;
  };
  /// An open waits for no run that began for a stat: what was buffered since would be missing.
  using Key = std::tuple<format::Question::Kind, Ino, bool>;
  static Key key_of(const format::Question& question) { return {question.kind, question.ino, question.from_open}; }

  std::shared_ptr<Recall> join(const format::Question& question) EXCLUDES(mutex_);
  std::shared_ptr<Recall> made() REQUIRES(mutex_);
  void begin(const format::Question& question) EXCLUDES(mutex_);
  void take_no_more(const format::Question& question) EXCLUDES(mutex_);
  void store_as_asked(const format::Question& question, FileNode& node);
  void release_as_asked(const format::Question& question, FileNode& node);
  void end(const format::Question& question, const FileNode& node, const Result<>& done) EXCLUDES(mutex_);

  Instance& instance_;
  OpenFiles& files_;
  KernelView& kernel_;
  std::atomic<std::uint64_t> begun_ = 0;
  Mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Line> under_way_ GUARDED_BY(mutex_);
  std::uint64_t last_number_ GUARDED_BY(mutex_) = 0;
  /// The newest that succeeded, of the last files asked for: an asker that was told "busy" may come back after its end.
  std::map<Key, std::shared_ptr<Recall>> succeeded_ GUARDED_BY(mutex_);
  unsigned waiting_ GUARDED_BY(mutex_) = 0;  // threads of this instance's, for all of them
  // Apart from the request pool and the file pool: their threads wait for other clients' releases, and those clients
  // for ours. No bound in practice: each may wait for an object that does not answer, and must hold up none whose do.
  ThreadPool threads_;
};

}  // namespace lccfs
