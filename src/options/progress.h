// SPDX-License-Identifier: LGPL-2.1-or-later
// The progress bar: one line of a terminal, written over again and again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "lccfs/clock.h"

namespace lccfs::options {

struct Progress {
  std::uint64_t done = 0;
  std::uint64_t expected = 0;  ///< 0: unknown
  std::string_view unit = "objects";
};

/// "[#####.....]  50%, 600 of 1200 objects, 300/s, 2 s left"; without what is not known.
std::string progress_line(const Progress& progress, std::chrono::nanoseconds since_start);

/// Standard error, if people look at it and `wanted`: what a bar writes on. Otherwise nothing.
std::function<void(const std::string&)> terminal(bool wanted);

/// Any thread.
class ProgressBar {
 public:
  using Write = std::function<void(const std::string&)>;
  /// `write` puts text on the terminal. A bar without one shows nothing.
  ProgressBar(Clock& clock, Write write) : clock_(clock), write_(std::move(write)) {}

  /// Shown a few times a second at most. Fewer done than before: it has begun anew.
  void show(const Progress& progress);
  /// Makes room for other lines; the bar comes back when it is shown the next time.
  void clear();

 private:
  Clock& clock_;
  const Write write_;
  Mutex mutex_;
  std::chrono::nanoseconds started_ GUARDED_BY(mutex_){0};
  std::optional<std::chrono::nanoseconds> shown_ GUARDED_BY(mutex_);
  std::uint64_t done_ GUARDED_BY(mutex_) = 0;
  bool on_screen_ GUARDED_BY(mutex_) = false;
};

}  // namespace lccfs::options
