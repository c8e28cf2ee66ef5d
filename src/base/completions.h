// SPDX-License-Identifier: LGPL-2.1-or-later
// For a thread that waits for completions (lccfs/object_store.h).
#pragma once

#include <deque>
#include <future>
#include <utility>

#include "lccfs/object_store.h"

namespace lccfs {

/// A completion, and where the answer comes. It owns the promise: the thread that waits may be gone before it returns.
template <class Answer>
auto promised() {
  std::promise<Answer> promise;
  auto answer = promise.get_future();
  return std::pair(std::move(answer),
                   [promise = std::move(promise)](Answer value) mutable { promise.set_value(std::move(value)); });
}

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
  std::deque<std::future<Result<>>> waiting_;
  Result<> result_;
};

}  // namespace lccfs
