// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/mount_table.h"

#include <fcntl.h>
#include <libmount/libmount.h>
#include <poll.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>

namespace lccfs::fuse {

namespace {
std::string text_of(dev_t device) { return std::to_string(major(device)) + ":" + std::to_string(minor(device)); }
}  // namespace

std::optional<MountEntry> mounted_at(const std::string& mountpoint, const char* table) {
  const std::unique_ptr<libmnt_table, decltype(&mnt_unref_table)> mounts(mnt_new_table_from_file(table),
                                                                         &mnt_unref_table);
  // Without a cache libmount compares words, and asks no file system about links.
  libmnt_fs* mount = mounts ? mnt_table_find_target(mounts.get(), mountpoint.c_str(), MNT_ITER_BACKWARD) : nullptr;
  if (mount == nullptr) return std::nullopt;
  return MountEntry{text_of(mnt_fs_get_devno(mount)), mnt_fs_get_fstype(mount)};
}

bool has_mounts_on_it(const std::string& device, const char* table) {
  const std::unique_ptr<libmnt_table, decltype(&mnt_unref_table)> mounts(mnt_new_table_from_file(table),
                                                                         &mnt_unref_table);
  const std::unique_ptr<libmnt_iter, decltype(&mnt_free_iter)> each(mnt_new_iter(MNT_ITER_FORWARD), &mnt_free_iter);
  std::set<int> of_that_device, parents;
  libmnt_fs* mount = nullptr;
  while (mounts && each && mnt_table_next_fs(mounts.get(), each.get(), &mount) == 0) {
    if (text_of(mnt_fs_get_devno(mount)) == device) of_that_device.insert(mnt_fs_get_id(mount));
    parents.insert(mnt_fs_get_parent_id(mount));
  }
  return std::ranges::any_of(of_that_device, [&parents](int id) { return parents.contains(id); });
}

MountTableWatch::MountTableWatch() : fd_(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {}

MountTableWatch::~MountTableWatch() { ::close(fd_); }

bool MountTableWatch::has_changed() {
  pollfd change = {.fd = fd_, .events = POLLPRI, .revents = 0};
  return fd_ < 0 || ::poll(&change, 1, 0) != 0;
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
