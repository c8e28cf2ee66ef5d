// SPDX-License-Identifier: LGPL-2.1-or-later
// Work of one owner on a pool of threads that others may use, too: the owner can wait for all of its own. Any thread.
#pragma once

#include <condition_variable>
#include <utility>

#include "base/mutex.h"
#include "base/thread_pool.h"

namespace lccfs {

class Tasks {
 public:
  explicit Tasks(ThreadPool& pool) : pool_(pool) {}
  ~Tasks() { wait(); }
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;

  void post(ThreadPool::Work work) EXCLUDES(mutex_) {
    {
      const Lock lock(mutex_);
      ++under_way_;
    }
    pool_.post([this, work = std::move(work)]() mutable {
      std::exchange(work, nullptr)();  // what it holds goes first: that may be the owner's, too
      const Lock lock(mutex_);
      --under_way_;
      changed_.notify_all();
    });
  }

  /// Returns when nothing of this is under way or in line.
  void wait() EXCLUDES(mutex_) {
    Lock lock(mutex_);
    lock.wait(changed_, [this]() REQUIRES(mutex_) { return under_way_ == 0; });
  }

 private:
  ThreadPool& pool_;
  Mutex mutex_;
  std::condition_variable changed_;
  unsigned under_way_ GUARDED_BY(mutex_) = 0;
};

}  // namespace lccfs
