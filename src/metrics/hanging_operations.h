// SPDX-License-Identifier: LGPL-2.1-or-later
// For a program that somebody waits for: what the store has not answered for some seconds is named in the log.
#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include "lccfs/object_store.h"
#include "metrics/operations.h"

namespace lccfs::metrics {

class HangingOperations {
 public:
  /// Longer than an OSD that restarts takes; a look at what is absent waits for half a minute, and says so itself.
  static constexpr std::chrono::seconds hangs_after{10};

  /// `slow_after`: what is answered later is named; 0: nothing.
  explicit HangingOperations(Clock& clock, std::chrono::nanoseconds slow_after = hangs_after);
  HangingOperations(const HangingOperations&) = delete;
  HangingOperations& operator=(const HangingOperations&) = delete;

  /// The store, with each call looked at; this outlives it.
  std::shared_ptr<ObjectStore> look_at(std::shared_ptr<ObjectStore> store);

 private:
  Operations operations_;
  std::jthread looks_;  // last: it uses these
};

}  // namespace lccfs::metrics
