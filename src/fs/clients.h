// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <vector>

#include "lccfs/volume.h"

namespace lccfs {

/// Of the instance records on Super; looks once at each whose state is live. Blocks.
Result<std::vector<InstanceInfo>> describe_instances(ObjectStore& store, const KeyPage& records);

}  // namespace lccfs
