// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The invariants of docs/ORDERING.md section 3 as code: V, P, Q, M, with T of section 7, and what else must hold
// between the objects of a volume. Reads, and changes nothing.
//
// The volume is at rest: no step is in flight, though instances may be there. All of the namespace is held in memory.
#pragma once

#include <vector>

#include "check/finding.h"
#include "lccfs/object_store.h"
#include "lccfs/result.h"

namespace lccfs::check {

/// All that is wrong; empty: nothing. An error is the store's, not the volume's. Blocks. May be called by any thread.
Result<std::vector<Finding>> check_volume(ObjectStore& store);

}  // namespace lccfs::check
