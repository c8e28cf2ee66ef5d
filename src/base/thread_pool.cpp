// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/thread_pool.h"

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace lccfs {

namespace {
constexpr std::chrono::seconds idle_limit{10};
}

ThreadPool::ThreadPool(std::size_t max_threads) : max_threads_(max_threads) {
  const Lock lock(mutex_);
  start_thread();
}

ThreadPool::~ThreadPool() {
  Lock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
  lock.wait(changed_, [this]() REQUIRES(mutex_) { return threads_ == 0; });
}

void ThreadPool::post(Work work) {
  const Lock lock(mutex_);
  line_.push_back(std::move(work));
  if (idle_ >= line_.size() || threads_ == max_threads_) {
    changed_.notify_one();
    return;
  }
  try {
    start_thread();
  } catch (const std::system_error&) {  // no more threads to be had: those there are do it
  }
}

/// The destructor waits for threads_ to fall to 0.
void ThreadPool::start_thread() {
  std::thread(&ThreadPool::serve, this).detach();
  ++threads_;
}

void ThreadPool::serve() {
  Lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait_for(lock, idle_limit, [this]() REQUIRES(mutex_) { return ending_ || !line_.empty(); });
    --idle_;
    if (line_.empty()) {
      if (ending_ || threads_ > 1) break;
      continue;  // the last one stays: there may be no other to be had when there is work again
    }
    Work work = std::move(line_.front());
    line_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
  --threads_;
  changed_.notify_all();
}

}  // namespace lccfs
