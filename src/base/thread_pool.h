// SPDX-License-Identifier: LGPL-2.1-or-later
// Threads for work that blocks on the store. Grows with need, so that work that waits never keeps other work waiting;
// idle threads end after a while.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>

#include "base/mutex.h"

namespace lccfs {

class ThreadPool {
 public:
  using Work = std::move_only_function<void()>;

  /// At most `max_threads` at once; further work waits in line. The default is no bound in practice: a thread that
  /// waits costs some 30 KiB, and for each a process of a user waits, too. One is there from the beginning: later there
  /// may be none to be had. std::system_error if there is none now.
  explicit ThreadPool(std::size_t max_threads = 8192);
  /// Runs what is in line, then waits for all threads.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Any thread, also the pool's own. Never blocks on the work.
  void post(Work work);

 private:
  void start_thread() REQUIRES(mutex_);
  void serve();

  const std::size_t max_threads_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> line_ GUARDED_BY(mutex_);
  std::size_t threads_ GUARDED_BY(mutex_) = 0;
  std::size_t idle_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;
};

}  // namespace lccfs
