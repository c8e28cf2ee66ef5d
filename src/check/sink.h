// SPDX-License-Identifier: LGPL-2.1-or-later
// Where findings go. Any thread may call any method.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "check/finding.h"

namespace lccfs::check {

class Sink {
 public:
  /// `on_finding` outlives the sink; it is called by one thread at a time.
  explicit Sink(const std::function<void(const Finding&)>& on_finding) : on_finding_(on_finding) {}

  /// Fills in `ino`.
  void report(Finding finding);
  void report(std::vector<Finding> findings);
  std::uint64_t count();

 private:
  const std::function<void(const Finding&)>& on_finding_;
  std::mutex mutex_;
  std::uint64_t count_ = 0;
};

}  // namespace lccfs::check
