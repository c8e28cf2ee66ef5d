// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What other instances ask of the files that are leased here (docs/DATA.md section 3). A question is answered at
// once, or nearly: a holder that is silent for long is evicted. The work continues while the asker is told "busy".
#pragma once

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
  /// Returns when nothing that was asked for is under way any more.
  void wait() EXCLUDES(mutex_);

 private:
  /// Under way: a second question for the same waits for the same work.
  struct Recall {
    bool finished = false;
    bool succeeded = false;
    unsigned waiting = 0;  // threads of this instance's
  };
  /// An open waits for no run that began for a stat: what was buffered since would be missing.
  using Key = std::tuple<format::Question::Kind, Ino, bool>;
  static Key key_of(const format::Question& question) { return {question.kind, question.ino, question.from_open}; }

  std::shared_ptr<Recall> join(const format::Question& question) EXCLUDES(mutex_);
  void begin(const format::Question& question) EXCLUDES(mutex_);
  void release_as_asked(const format::Question& question, std::shared_ptr<FileNode>&& node);
  void end(const format::Question& question, std::shared_ptr<FileNode>&& node, const Result<>& done) EXCLUDES(mutex_);

  Instance& instance_;
  OpenFiles& files_;
  KernelView& kernel_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, std::shared_ptr<Recall>> under_way_ GUARDED_BY(mutex_);
  unsigned waiting_ GUARDED_BY(mutex_) = 0;  // threads of this instance's, for all of them
  // Apart from the request pool and the file pool: their threads wait for other clients' releases, and those clients
  // for ours. No bound in practice: each may wait for an object that does not answer, and must hold up none whose do.
  ThreadPool threads_;
};

}  // namespace lccfs
