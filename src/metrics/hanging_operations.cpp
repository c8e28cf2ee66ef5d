// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics/hanging_operations.h"

#include <chrono>
#include <utility>

#include "base/periodic.h"
#include "metrics/measured_store.h"

namespace lccfs::metrics {

HangingOperations::HangingOperations(Clock& clock, std::chrono::nanoseconds slow_after)
    : operations_(clock, store_operations(slow_after)),
      looks_(run_each_second(clock, [this] { operations_.tick(); })) {}

std::shared_ptr<ObjectStore> HangingOperations::look_at(std::shared_ptr<ObjectStore> store) {
  return measured(std::move(store), operations_);
}

}  // namespace lccfs::metrics
