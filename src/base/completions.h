// SPDX-License-Identifier: LGPL-2.1-or-later
// For a thread that waits for completions (lccfs/object_store.h).
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <utility>

#include "base/blocking.h"
#include "lccfs/object_store.h"

namespace lccfs {

/// What a thread waits for.
template <class Answer>
class Awaited {
 public:
  Awaited() = default;
  explicit Awaited(std::future<Answer> answer) : answer_(std::move(answer)) {}
  /// Once.
  Answer get() {
    if (answer_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) about_to_block();
    return answer_.get();
  }

 private:
  std::future<Answer> answer_;
};

/// A completion, and where the answer comes. It owns the promise: the thread that waits may be gone before it returns.
template <class Answer>
auto promised() {
  std::promise<Answer> promise;
  Awaited<Answer> answer(promise.get_future());
  return std::pair(std::move(answer),
                   [promise = std::move(promise)](Answer value) mutable { promise.set_value(std::move(value)); });
}

/// Calls that are under way, and whose completions use an object: its end waits for them. Any thread.
class InFlight {
 public:
  void enter() { count_.fetch_add(1); }
  /// Nothing of the object is touched after it: it may be all that the end has waited for.
  void leave() {
    if (count_.fetch_sub(1) == 1) count_.notify_all();
  }
  void wait() const {
    for (auto count = count_.load(); count != 0; count = count_.load()) count_.wait(count);
  }

 private:
  std::atomic<std::size_t> count_{0};
};

/// Runs steps of the store, a bounded number at once, and waits for all: each takes a `next()` for its completion.
/// One thread.
class StepsInFlight {
 public:
  explicit StepsInFlight(std::size_t most_in_flight = 64) : most_in_flight_(most_in_flight) {}

  ObjectStore::DataDone next() {
    if (waiting_.size() == most_in_flight_) wait_for_first();
    auto [answer, done] = promised<Result<>>();
    waiting_.push_back(std::move(answer));
    return std::move(done);
  }
  Result<> wait() {
    while (!waiting_.empty()) wait_for_first();
    return result_;
  }

 private:
  void wait_for_first() {
    auto result = waiting_.front().get();
    waiting_.pop_front();
    if (!result && result_) result_ = std::move(result);
  }
  const std::size_t most_in_flight_;
  std::deque<Awaited<Result<>>> waiting_;
  Result<> result_;
};

}  // namespace lccfs
