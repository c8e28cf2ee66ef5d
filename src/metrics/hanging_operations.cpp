// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics/hanging_operations.h"

#include <chrono>
#include <utility>

#include "base/periodic.h"
#include "metrics/measured_store.h"

namespace lccfs::metrics {

HangingOperations::HangingOperations(Clock& clock, std::chrono::nanoseconds slow_after)
    : operations_(clock, {.family = "lccfs_store_operation",
                          .noun = "store operation",
                          .kinds = store_operation_kinds(),
                          .slow_after = slow_after}),
      looks_(run_periodically(
          clock, [] { return std::chrono::seconds(1); },
          [this](const std::stop_token&) { return operations_.tick(), true; })) {}

std::shared_ptr<ObjectStore> HangingOperations::look_at(std::shared_ptr<ObjectStore> store) {
  return measured(std::move(store), operations_);
}

}  // namespace lccfs::metrics
