// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>

namespace lccfs::txn {

/// No store takes all of a huge file's map at once: so many blocks are a mebibyte, or 42 where objects are there in part.
inline constexpr std::size_t map_blocks_of_a_step = 4096;

}  // namespace lccfs::txn
