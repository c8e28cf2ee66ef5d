// SPDX-License-Identifier: LGPL-2.1-or-later
// Calls into a file system that may never answer. Such a call ends with the file system, or where that lets go of a
// process that ends, and not before: so each has a thread that can be left there. One thread.
#pragma once

#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "lccfs/clock.h"
#include "lccfs/result.h"

namespace lccfs::cli {

class PatientCalls {
 public:
  /// `give_up`, which runs once at most, ends what can be ended of the file systems.
  explicit PatientCalls(std::function<void()> give_up, Clock& clock = system_clock())
      : give_up_(std::move(give_up)), clock_(clock) {}

  /// Its answer. timed_out: none within 150 s (names of a client that has just died may take two minutes), or within 10 s
  /// where somebody wants to end (Interruption); no call is made after it. What the call uses must be its own, for it may be
  /// left behind.
  template <class Call>
  std::invoke_result_t<Call&> run(Call call) {
    if (has_given_up_) return failure(ErrorCode::timed_out, "not tried");
    std::packaged_task<std::invoke_result_t<Call&>()> task(std::move(call));
    auto answer = task.get_future();
    const auto begin = clock_.elapsed();
    std::thread(std::move(task)).detach();
    LCCFS_CHECK(wait(begin, [&answer] { return answer.wait_for(between_looks) == std::future_status::ready; }));
    return answer.get();
  }
  bool has_given_up() const { return has_given_up_; }

 private:
  static constexpr std::chrono::milliseconds between_looks{10};
  Result<> wait(std::chrono::nanoseconds begin, const std::function<bool()>& has_ended);

  const std::function<void()> give_up_;
  Clock& clock_;
  bool has_given_up_ = false;
};

}  // namespace lccfs::cli
