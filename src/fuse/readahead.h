// SPDX-License-Identifier: LGPL-2.1-or-later
// How far the kernel reads ahead on a mount.
#pragma once

#include <cstdint>
#include <string>

#include "lccfs/result.h"

namespace lccfs::fuse {

/// `device`: the mount's, "major:minor". For files that are opened from then on: each keeps what stood there at its
/// open. Only root may; the error says what it costs that it was not done.
Result<> set_readahead(const std::string& device, std::uint64_t size_bytes,
                       const std::string& devices = "/sys/class/bdi");

}  // namespace lccfs::fuse
