// SPDX-License-Identifier: LGPL-2.1-or-later
// The store port on librados. Nothing of librados shows here.
#pragma once

#include <memory>

#include "lccfs/object_store.h"
#include "lccfs/result.h"
#include "lccfs/volume_address.h"

namespace lccfs {

/// Connects to the cluster and opens the pool. The store's destructor waits for what is in flight, but for reads of metadata.
Result<std::unique_ptr<ObjectStore>> open_rados_store(const VolumeAddress& address, const StoreOptions& options);
/// As ask_monitors (store/monitors.h).
Result<std::string> ask_rados_monitors(const VolumeAddress& address, const std::string& command);

}  // namespace lccfs
