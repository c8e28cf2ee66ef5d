// SPDX-License-Identifier: LGPL-2.1-or-later
// What is mounted where, as the kernel lists it: looking needs no answer of the file system that is mounted there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lccfs::fuse {

struct MountEntry {
  std::string device;  ///< "major:minor"
  std::string type;    ///< "fuse.lccfs"
};

/// The topmost mount at that very directory. `table`: the text of /proc/self/mountinfo.
std::optional<MountEntry> find_mount(std::string_view table, std::string_view mountpoint);
/// The same in this process's table.
std::optional<MountEntry> mounted_at(const std::string& mountpoint);

}  // namespace lccfs::fuse
