// SPDX-License-Identifier: LGPL-2.1-or-later
// Starting over after a lost race. Each loss means that another step went through. Two operations that undo each
// other's work would repeat that for ever: each waits for a random time, and gives up after a while. One thread.
#pragma once

#include <algorithm>
#include <chrono>

#include "instance/instance.h"
#include "lccfs/result.h"

namespace lccfs {

class Attempts {
 public:
  explicit Attempts(Instance& instance) : clock_(instance.clock()) {
    const Token seed = instance.next_token();  // differs between operations that may race
    random_ = seed.instance.value * 0x9E3779B97F4A7C15U + seed.number;
  }

  /// To be called before each try: busy when it is time to give up.
  Result<> next() {
    ++tries_;
    if (tries_ > most_tries) return failure(ErrorCode::busy, "lost too many races against other clients");
    if (tries_ > tries_at_once) clock_.sleep_for(random_pause());
    return {};
  }

  /// What memory holds is good enough for the first try only.
  bool first() const { return tries_ == 1; }

 private:
  static constexpr unsigned tries_at_once = 4;
  static constexpr unsigned most_tries = 200;

  std::chrono::nanoseconds random_pause() {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    const auto longest_us = std::uint64_t{500} << std::min(tries_ - tries_at_once, 7U);
    return std::chrono::microseconds((random_ >> 33) % longest_us);
  }

  Clock& clock_;
  std::uint64_t random_;
  unsigned tries_ = 0;
};

/// Calls `attempt(bool first)` until it says that it is done (Result<bool>).
template <class Attempt>
Result<> until_done(Instance& instance, Attempt attempt) {
  for (Attempts tries(instance);;) {
    LCCFS_CHECK(tries.next());
    LCCFS_TRY(const bool done, attempt(tries.first()));
    if (done) return {};
  }
}

}  // namespace lccfs
