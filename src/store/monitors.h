// SPDX-License-Identifier: LGPL-2.1-or-later
// What the monitors of a volume's cluster answer to a read-only command: for diagnosis, not for the file system.
#pragma once

#include <string>

#include "lccfs/volume_address.h"

namespace lccfs {

/// `command` is JSON, as `ceph` sends it; so is the answer. Connects for it. Gives up after 30 seconds. unsupported: the
/// volume is in no cluster.
Result<std::string> ask_monitors(const VolumeAddress& address, const std::string& command);

}  // namespace lccfs
