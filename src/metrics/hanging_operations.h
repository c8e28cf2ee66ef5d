// SPDX-License-Identifier: LGPL-2.1-or-later
// For a program that somebody waits for: what the store has not answered for some seconds is named in the log.
#pragma once

#include <memory>
#include <thread>

#include "lccfs/object_store.h"
#include "metrics/operations.h"

namespace lccfs::metrics {

class HangingOperations {
 public:
  explicit HangingOperations(Clock& clock);
  HangingOperations(const HangingOperations&) = delete;
  HangingOperations& operator=(const HangingOperations&) = delete;

  /// The store, with each call looked at; this outlives it.
  std::shared_ptr<ObjectStore> look_at(std::shared_ptr<ObjectStore> store);

 private:
  Operations operations_;
  std::jthread looks_;  // last: it uses these
};

}  // namespace lccfs::metrics
