// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>

#include "lccfs/volume_address.h"

namespace lccfs::cli {

/// For commands that somebody waits for: every step gives up after 30 s.
Result<std::unique_ptr<ObjectStore>> open_briefly(const VolumeAddress& address, bool create);

}  // namespace lccfs::cli
