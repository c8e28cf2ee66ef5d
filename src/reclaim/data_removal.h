// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The removes of data objects of one number that is dead. A pass waits for them as long as the store answers some: one
// object that does not answer keeps neither the pass nor the end of its client waiting. So the completions own this, and
// once it was given up they touch nothing else that is the pass's. A remove that lands later removes what no inode leads
// to any more, as numbers are used once.
//
// `send` and `wait`: one thread; they block. The completions: any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "base/mutex.h"
#include "lccfs/clock.h"
#include "lccfs/object_store.h"
#include "reclaim/pace.h"
#include "reclaim/unanswered.h"

namespace lccfs::reclaim {

struct Tally;

class DataRemoval : public std::enable_shared_from_this<DataRemoval> {
 public:
  /// What all removals of a pass share. It is there until each was waited for, or given up.
  struct Pass {
    ObjectStore& store;
    Clock& clock;
    Pace& pace;
    Tally* tally;  ///< nullptr: nothing is counted
    std::stop_token stop;
    std::function<void()> each_second;  ///< called while one waits, about so often
  };
  DataRemoval(Ino ino, Pass pass, std::shared_ptr<Unanswered> unanswered);

  /// Removes an object of so many bytes once it may. false: all of it was given up: it is to stop, or the store has
  /// answered nothing for too long (unanswered.h). Nothing more is to be sent.
  bool send(ObjectIndex index, std::uint64_t bytes) EXCLUDES(mutex_);
  /// Until each is answered. false: given up. Errors are those of the removes.
  Result<bool> wait() EXCLUDES(mutex_);
  /// Which are gone for certain. After `wait`: no more are added.
  std::vector<ObjectIndex> removed() const EXCLUDES(mutex_);

 private:
  bool is_in_vain() EXCLUDES(mutex_);
  void give_up() EXCLUDES(mutex_);
  void answered(ObjectIndex index, std::uint64_t bytes, Result<> removed) EXCLUDES(mutex_);
  bool is_over() const REQUIRES(mutex_) { return in_flight_ == 0 || is_given_up_; }

  const Ino ino_;
  const Pass pass_;
  const std::shared_ptr<Unanswered> unanswered_;
  mutable Mutex mutex_;  // before those of the pace and of what is unanswered
  std::condition_variable changed_;
  std::size_t in_flight_ GUARDED_BY(mutex_) = 0, answers_ GUARDED_BY(mutex_) = 0;
  bool is_given_up_ GUARDED_BY(mutex_) = false;
  Result<> result_ GUARDED_BY(mutex_);
  std::vector<ObjectIndex> removed_ GUARDED_BY(mutex_);
  std::size_t answers_seen_ GUARDED_BY(mutex_) = 0;       // as somebody looked last
  std::chrono::nanoseconds heard_ GUARDED_BY(mutex_){0};  // when there were more than before, or nothing in flight
};

}  // namespace lccfs::reclaim
