// SPDX-License-Identifier: LGPL-2.1-or-later
// A store with instruments: each call goes to the store that it measures, and is counted and timed on its way.
#pragma once

#include <memory>
#include <span>

#include "lccfs/object_store.h"
#include "metrics/operations.h"

namespace lccfs::metrics {

/// What `operations` must have been made for.
std::span<const OperationKind> store_operation_kinds();

/// `operations` outlives both stores.
std::unique_ptr<ObjectStore> measured(std::shared_ptr<ObjectStore> store, Operations& operations);

}  // namespace lccfs::metrics
