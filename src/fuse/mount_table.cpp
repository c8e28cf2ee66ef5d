// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/mount_table.h"

#include <libmount/libmount.h>
#include <sys/sysmacros.h>

#include <memory>

namespace lccfs::fuse {

std::optional<MountEntry> mounted_at(const std::string& mountpoint, const char* table) {
  const std::unique_ptr<libmnt_table, decltype(&mnt_unref_table)> mounts(mnt_new_table_from_file(table),
                                                                         &mnt_unref_table);
  // Without a cache libmount compares words, and asks no file system about links.
  libmnt_fs* mount = mounts ? mnt_table_find_target(mounts.get(), mountpoint.c_str(), MNT_ITER_BACKWARD) : nullptr;
  if (mount == nullptr) return std::nullopt;
  const dev_t device = mnt_fs_get_devno(mount);
  return MountEntry{std::to_string(major(device)) + ":" + std::to_string(minor(device)), mnt_fs_get_fstype(mount)};
}

}  // namespace lccfs::fuse
