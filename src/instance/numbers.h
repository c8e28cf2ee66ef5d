// SPDX-License-Identifier: LGPL-2.1-or-later
// An instance's own numbers: they count its tokens, guarded steps and queue items alike, and rise for ever; and which
// of them something may still be at work with (docs/PROTOCOL.md section 2). Any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <set>

#include "base/mutex.h"

namespace lccfs {

class Numbers {
 public:
  std::uint64_t next() { return next_.fetch_add(1); }

  /// While it lives, no number drawn since it began is retired. Any thread may end it.
  class Running {
   public:
    explicit Running(Numbers& numbers) : numbers_(numbers) {
      const Lock lock(numbers_.mutex_);
      place_ = numbers_.running_.insert(numbers_.next_.load());
    }
    ~Running() {
      const Lock lock(numbers_.mutex_);
      numbers_.running_.erase(place_);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Numbers& numbers_;
    std::multiset<std::uint64_t>::const_iterator place_;
  };

  /// All numbers below it are retired: the lowest that is still running, or else the next one.
  std::uint64_t lowest_running() {
    const Lock lock(mutex_);
    const auto next = next_.load();
    return running_.empty() ? next : std::min(*running_.begin(), next);
  }
  bool is_anything_running() {
    const Lock lock(mutex_);
    return !running_.empty();
  }

 private:
  std::atomic<std::uint64_t> next_{1};
  Mutex mutex_;
  std::multiset<std::uint64_t> running_ GUARDED_BY(mutex_);  // the next number as each of them began
};

}  // namespace lccfs
