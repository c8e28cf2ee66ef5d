// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "lccfs/volume_address.h"

namespace lccfs::daemon {

/// What df, /proc/mounts and the metrics show of a volume, and /etc/fstab has as its first word: POOL[/NAMESPACE], or a
/// directory.
std::string source_of(const VolumeAddress& address);

}  // namespace lccfs::daemon
