// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel's requests: one short function each that converts, calls the file system and answers. No semantics.
#pragma once

#include "fuse/fuse_api.h"

namespace lccfs::fuse {

/// For a session whose user data is a Serving.
fuse_lowlevel_ops operations();

}  // namespace lccfs::fuse
