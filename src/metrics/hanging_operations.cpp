// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics/hanging_operations.h"

#include <chrono>
#include <utility>

#include "base/periodic.h"
#include "metrics/measured_store.h"

namespace lccfs::metrics {
namespace {

/// Longer than an OSD that restarts takes; a look at what is absent waits for half a minute, and says so itself.
constexpr std::chrono::seconds hangs_after{10};

}  // namespace

HangingOperations::HangingOperations(Clock& clock)
    : operations_(clock, {.family = "lccfs_store_operation",
                          .noun = "store operation",
                          .kinds = store_operation_kinds(),
                          .slow_after = hangs_after}),
      looks_(run_periodically(
          clock, [] { return std::chrono::seconds(1); },
          [this](const std::stop_token&) { return operations_.tick(), true; })) {}

std::shared_ptr<ObjectStore> HangingOperations::look_at(std::shared_ptr<ObjectStore> store) {
  return measured(std::move(store), operations_);
}

}  // namespace lccfs::metrics
