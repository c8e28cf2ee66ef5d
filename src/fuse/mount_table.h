// SPDX-License-Identifier: LGPL-2.1-or-later
// What is mounted where, as the kernel lists it: looking needs no answer of the file system that is mounted there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lccfs::fuse {

struct MountEntry {
  std::string device;  ///< "major:minor"
  std::string type;    ///< "fuse.lccfs"
};

/// The topmost mount at that very directory, in this process's table.
std::optional<MountEntry> mounted_at(const std::string& mountpoint, const char* table = "/proc/self/mountinfo");

/// Of a mount's device, as the kernel numbers what it knows of devices: a later device of that name has another number.
/// 0: there is none, or /sys does not show it.
std::uint64_t number_of_device(const std::string& device);

/// Tells umount(8), by an entry in its own table (/run/mount/utab), that this mount has a helper that waits until all is
/// stored (umount.lccfs(8)). Of a mount without an entry there umount(8) 2.38 takes the type from statfs(2), which says
/// "fuse", and looks for no helper. For root; false: it is not told.
bool note_umount_helper(const std::string& mountpoint);
/// Takes the entry away, if nothing is mounted there any more: umount(8) has, fusermount3(1) has not.
void forget_umount_helper(const std::string& mountpoint);

}  // namespace lccfs::fuse
