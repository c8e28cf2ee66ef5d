// SPDX-License-Identifier: LGPL-2.1-or-later
// Records of which one byte is not as it was written. Pure functions; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lccfs/types.h"
#include "txn/repair_txn.h"

namespace lccfs::repair {

/// The one record that differs from `bytes` in one byte, ends with the right CRC-32C, and pleases `decodes`; nullopt if
/// there is none, or more than one. Takes time in proportion to the length.
std::optional<Bytes> with_one_byte_corrected(std::string_view bytes,
                                             const std::function<bool(std::string_view)>& decodes);

/// What stood in that part of an object before one byte of it changed, if nothing else can have.
std::optional<Bytes> corrected(const std::string& object, const txn::Part& part, const Bytes& seen);

}  // namespace lccfs::repair
