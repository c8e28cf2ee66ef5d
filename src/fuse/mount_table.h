// SPDX-License-Identifier: LGPL-2.1-or-later
// What is mounted where, as the kernel lists it: looking needs no answer of the file system that is mounted there.
#pragma once

#include <optional>
#include <string>

namespace lccfs::fuse {

struct MountEntry {
  std::string device;  ///< "major:minor"
  std::string type;    ///< "fuse.lccfs"
};

/// The topmost mount at that very directory, in this process's table.
std::optional<MountEntry> mounted_at(const std::string& mountpoint, const char* table = "/proc/self/mountinfo");

}  // namespace lccfs::fuse
