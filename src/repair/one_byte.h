// SPDX-License-Identifier: LGPL-2.1-or-later
// Records of which one byte is not as it was written. Pure functions; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "lccfs/types.h"

namespace lccfs::repair {

/// The one record that differs from `bytes` in one byte, ends with the right CRC-32C, and pleases `decodes`; nullopt if
/// there is none, or more than one. Takes time in proportion to the length.
std::optional<Bytes> with_one_byte_corrected(std::string_view bytes,
                                             const std::function<bool(std::string_view)>& decodes);

}  // namespace lccfs::repair
