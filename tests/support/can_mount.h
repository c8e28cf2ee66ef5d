// SPDX-License-Identifier: LGPL-2.1-or-later
// Whether a test may mount here.
#pragma once

#include <unistd.h>

namespace lccfs::test {

inline bool can_mount() { return geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0; }

}  // namespace lccfs::test
