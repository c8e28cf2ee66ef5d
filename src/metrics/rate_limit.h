// SPDX-License-Identifier: LGPL-2.1-or-later
// So many in a second, and a count of the rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "lccfs/clock.h"

namespace lccfs::metrics {

/// Any thread.
class RateLimit {
 public:
  RateLimit(Clock& clock, unsigned per_second) : clock_(clock), per_second_(per_second) {}

  /// nullopt: this one is too many. Else how many were since the last that was not.
  std::optional<std::uint64_t> admit() EXCLUDES(mutex_) {
    const auto now = clock_.elapsed();
    const Lock lock(mutex_);
    if (!began_ || now - *began_ >= std::chrono::seconds(1)) {
      began_ = now;
      admitted_ = 0;
    }
    if (admitted_ == per_second_) return ++suppressed_, std::nullopt;
    ++admitted_;
    return std::exchange(suppressed_, 0);
  }

 private:
  Clock& clock_;
  const unsigned per_second_;
  Mutex mutex_;
  std::optional<std::chrono::nanoseconds> began_ GUARDED_BY(mutex_);  // the second that runs
  unsigned admitted_ GUARDED_BY(mutex_) = 0;                          // in it
  std::uint64_t suppressed_ GUARDED_BY(mutex_) = 0;
};

}  // namespace lccfs::metrics
