// SPDX-License-Identifier: LGPL-2.1-or-later
// The number that the kernel has for an open file: the handle, and which directory on top of the volume the file was
// below when it was opened. So reads and writes need not look that up.
#pragma once

#include "fuse/fuse_api.h"
#include "lccfs/file_system.h"
#include "metrics/directories.h"

namespace lccfs::fuse {

/// Handles are counted up from 1: they do not come near.
inline constexpr unsigned handle_bits = 48;

inline HandleId tagged(HandleId handle, metrics::DirectoryTag directory) {
  return {handle.value | std::uint64_t{directory.value} << handle_bits};
}
inline HandleId handle_of(const fuse_file_info* info) { return {info->fh & ((std::uint64_t{1} << handle_bits) - 1)}; }
inline metrics::DirectoryTag directory_of(const fuse_file_info* info) {
  return {static_cast<std::uint16_t>(info->fh >> handle_bits)};
}

}  // namespace lccfs::fuse
