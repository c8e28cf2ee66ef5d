// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/mount_table.h"

#include <libmount/libmount.h>
#include <sys/stat.h>
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

std::uint64_t number_of_device(const std::string& device) {
  struct stat values = {};
  return stat(("/sys/class/bdi/" + device).c_str(), &values) == 0 ? values.st_ino : 0;
}

namespace {
using FileSystemEntry = std::unique_ptr<libmnt_fs, decltype(&mnt_unref_fs)>;

bool update_utab(const char* target, libmnt_fs* entry) {
  const std::unique_ptr<libmnt_update, decltype(&mnt_free_update)> update(mnt_new_update(), &mnt_free_update);
  return update && mnt_update_set_fs(update.get(), 0, target, entry) == 0 &&
         mnt_update_table(update.get(), nullptr) == 0;
}
}  // namespace

bool note_umount_helper(const std::string& mountpoint) {
  const FileSystemEntry entry(mnt_new_fs(), &mnt_unref_fs);
  return entry && mnt_fs_set_target(entry.get(), mountpoint.c_str()) == 0 &&
         mnt_fs_set_source(entry.get(), "lccfs") == 0 && mnt_fs_set_fstype(entry.get(), "fuse.lccfs") == 0 &&
         mnt_fs_set_options(entry.get(), "uhelper=fuse.lccfs") == 0 && update_utab(nullptr, entry.get());
}

void forget_umount_helper(const std::string& mountpoint) {
  if (!mounted_at(mountpoint)) update_utab(mountpoint.c_str(), nullptr);
}

}  // namespace lccfs::fuse
