// SPDX-License-Identifier: LGPL-2.1-or-later
// What the monitors say of pools. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lccfs/object_store.h"

namespace lccfs::rados {

/// Of the answer to `ceph df detail` as JSON, what concerns a volume in these pools, which may be one. nullopt: they are
/// not in it, or it has another shape.
std::optional<Capacity> capacity_of_pools(const std::string& df, std::int64_t data_pool, std::int64_t metadata_pool);

}  // namespace lccfs::rados
