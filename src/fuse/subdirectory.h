// SPDX-License-Identifier: LGPL-2.1-or-later
// A directory of the volume that is mounted instead of its root.
#pragma once

#include <string>

#include "lccfs/file_system.h"

namespace lccfs::fuse {

/// The names of an absolute path; none for the root. `invalid`: it is not absolute, or has "." or ".." in it.
Result<std::vector<std::string>> names_in(const std::string& path);

/// The directory at that path now. Symbolic links are not followed: not_directory, or not_found, with one line for
/// people. Blocks.
Result<Ino> find_directory(FileSystem& fs, const std::string& path);

}  // namespace lccfs::fuse
