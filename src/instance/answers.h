// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What this instance answers to others (docs/PROTOCOL.md section 2): questions about leases, which the file system
// answers, and the collectors' liveness poll. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "format/records.h"
#include "instance/queue.h"
#include "lccfs/clock.h"

namespace lccfs {

/// A function that may be exchanged while others are calling it.
template <class Function>
class Exchangeable {
 public:
  /// Returns when the old one is no longer running. Empty: none.
  void set(Function function) EXCLUDES(mutex_) {
    Lock lock(mutex_);
    function_ = function ? std::make_shared<const Function>(std::move(function)) : nullptr;
    lock.wait(idle_, [this]() REQUIRES(mutex_) { return running_ == 0; });
  }
  /// Calls `use` with the function, if there is one.
  template <class Use>
  void call(const Use& use) EXCLUDES(mutex_) {
    std::shared_ptr<const Function> function;
    {
      const Lock lock(mutex_);
      if (!function_) return;
      function = function_;
      ++running_;
    }
    use(*function);
    const Lock lock(mutex_);
    --running_;
    idle_.notify_all();
  }

 private:
  Mutex mutex_;
  std::condition_variable idle_;
  unsigned running_ GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const Function> function_ GUARDED_BY(mutex_);
};

class Answers {
 public:
  /// Answers another instance's question; runs on the question threads (watches.h). Waits for no step on the store, which
  /// it leaves to threads of its own, and asks no other instance.
  using QuestionHandler = std::function<format::Answer(const format::Question&)>;
  /// Whether an inode is open here, or an open of it has begun. Called by the poll threads (watches.h), and by the
  /// thread of this instance's own poll; must not block on the store.
  using OpenProbe = std::function<bool(Ino)>;

  Answers(OwnQueue& queue, Clock& clock, const InstanceId& me) : queue_(queue), clock_(clock), me_(me) {}

  Exchangeable<QuestionHandler> question_handler;
  Exchangeable<OpenProbe> open_probe;  ///< none: nothing is open here
  /// A watch was set again: questions that came in between were not heard. Must not block on the store.
  Exchangeable<std::function<void()>> missed_handler;

  /// nullopt: there is no handler.
  std::optional<format::Answer> to(const format::Question& question);
  /// Does not wait for the store.
  format::PollReply to(const format::LivenessPoll& call) EXCLUDES(mutex_);
  /// When another instance polled last (Clock::elapsed) and took a turn with that; nullopt: never.
  std::optional<std::chrono::nanoseconds> last_poll() const EXCLUDES(mutex_);

 private:
  OwnQueue& queue_;
  Clock& clock_;
  const InstanceId& me_;
  mutable Mutex mutex_;
  std::optional<std::chrono::nanoseconds> last_poll_ GUARDED_BY(mutex_);
};

}  // namespace lccfs
