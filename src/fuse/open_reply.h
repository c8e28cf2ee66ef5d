// SPDX-License-Identifier: LGPL-2.1-or-later
// Answers to OPEN and CREATE as the kernel's own structures: libfuse 3.14 has no field for
// FOPEN_PARALLEL_DIRECT_WRITES, and the kernel's interface is the same for every version of libfuse.
#pragma once

#include <string>

#include "lccfs/file_system.h"

namespace lccfs::fuse {

/// `flags` as of open(2).
std::string open_answer(const OpenReply& reply, int flags);
std::string create_answer(const CreateReply& reply, int flags);

}  // namespace lccfs::fuse
