// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <deque>
#include <future>
#include <utility>

#include "lccfs/object_store.h"

namespace lccfs {

/// Runs steps of the store, a bounded number at once, and waits for all: each takes a `next()` for its completion.
/// One thread.
class StepsInFlight {
 public:
  ObjectStore::DataDone next() {
    if (waiting_.size() == most_in_flight) wait_for_first();
    std::promise<Result<>> promise;
    waiting_.push_back(promise.get_future());
    return [promise = std::move(promise)](Result<> result) mutable { promise.set_value(std::move(result)); };
  }
  Result<> wait() {
    while (!waiting_.empty()) wait_for_first();
    return result_;
  }

 private:
  static constexpr std::size_t most_in_flight = 64;
  void wait_for_first() {
    auto result = waiting_.front().get();
    waiting_.pop_front();
    if (!result && result_) result_ = std::move(result);
  }
  std::deque<std::future<Result<>>> waiting_;
  Result<> result_;
};

}  // namespace lccfs
