// SPDX-License-Identifier: LGPL-2.1-or-later
// Which record stands in which part of an object. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "lccfs/types.h"
#include "txn/repair_txn.h"

namespace lccfs::repair {

/// What stood in that part before one byte of it changed, if nothing else can have.
std::optional<Bytes> corrected(const std::string& object, const txn::Part& part, const Bytes& seen);

}  // namespace lccfs::repair
