// SPDX-License-Identifier: LGPL-2.1-or-later
// A store with instruments: each call goes to the store that it measures, and is counted and timed on its way.
#pragma once

#include <chrono>
#include <memory>

#include "lccfs/object_store.h"
#include "metrics/operations.h"

namespace lccfs::metrics {

/// What the operations of a measured store are made for.
Operations::About store_operations(std::chrono::nanoseconds slow_after);

/// `operations` outlives both stores.
std::unique_ptr<ObjectStore> measured(std::shared_ptr<ObjectStore> store, Operations& operations);

}  // namespace lccfs::metrics
