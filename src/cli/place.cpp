// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/place.h"

#include <libmount/libmount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "cli/commands.h"
#include "objects/super.h"
#include "survey/paths.h"

namespace lccfs::cli {

namespace {

constexpr const char* type_of_mounts = "fuse.lccfs";

/// What the mount table has as the source of the volume that is mounted with that device number.
std::optional<std::string> source_of_device(dev_t device) {
  const std::unique_ptr<libmnt_table, decltype(&mnt_unref_table)> mounts(
      mnt_new_table_from_file("/proc/self/mountinfo"), &mnt_unref_table);
  libmnt_fs* mount = mounts ? mnt_table_find_devno(mounts.get(), device, MNT_ITER_BACKWARD) : nullptr;
  if (mount == nullptr || mnt_fs_get_fstype(mount) == nullptr || mnt_fs_get_source(mount) == nullptr) return {};
  if (std::strcmp(mnt_fs_get_fstype(mount), type_of_mounts) != 0) return std::nullopt;
  return mnt_fs_get_source(mount);
}

constexpr const char* before_part = ":/";
constexpr const char* what_to_give = "give -p POOL (with -c CEPH.CONF), --local DIRECTORY, or a path on a mount";

/// A directory's own name may have ":/" in it: what is a directory decides.
std::string directory_in(const std::string& source) {
  std::error_code error;
  for (auto end = source.size(); end != std::string::npos; end = source.rfind(before_part, end - 1)) {
    if (std::filesystem::is_directory(source.substr(0, end), error)) return source.substr(0, end);
  }
  return source.substr(0, source.find(before_part));
}

}  // namespace

void set_volume_of_source(const std::string& source, VolumeAddress& address) {
  if (source.starts_with('/')) {
    address.local_directory = directory_in(source);
    return;
  }
  const std::string volume = source.substr(0, source.find(before_part));
  const auto slash = volume.find('/');
  address.pool = volume.substr(0, slash);
  address.pool_namespace = slash == std::string::npos ? "" : volume.substr(slash + 1);
}

Result<> find_mounted(Place& place) {
  struct stat found = {};
  if (lstat(place.path.c_str(), &found) != 0) return failure(ErrorCode::invalid, place.path + ": " + strerror(errno));
  auto source = source_of_device(found.st_dev);
  const bool may_lead_there = !source && S_ISLNK(found.st_mode) && stat(place.path.c_str(), &found) == 0;
  if (may_lead_there) source = source_of_device(found.st_dev);
  if (!source) return failure(ErrorCode::invalid, place.path + " is on no mounted volume");
  place.ino = Ino{found.st_ino};
  set_volume_of_source(*source, place.address);
  return {};
}

bool names_volume(const Place& place) { return !place.address.pool.empty() || !place.address.local_directory.empty(); }

Result<Place> resolve_place(Place place) {
  if (names_volume(place)) return place;
  const auto mounted = find_mounted(place);
  if (!mounted) return failure(mounted.error().code, mounted.error().context + "; " + what_to_give);
  return place;
}

void add_place(options::CommandLine& line, Place& place, const std::string& operand, const std::string& help) {
  options::add_address(line, place.address, [&place]() -> Result<> {
    if (!place.path.empty() && place.address.pool_namespace.empty()) return {};
    return failure(ErrorCode::invalid, std::string("which volume? ") + what_to_give);
  });
  line.group("Place");
  line.operand(operand, options::text(place.path), help);
}

Result<OpenVolume> open_to_look(const VolumeAddress& address) {
  LCCFS_TRY(auto store, open_store(address, {.step_timeout = step_timeout}));
  auto super = objects::read_super(objects::reader_of(*store));
  if (!super && super.error().code == ErrorCode::not_found) return std::unexpected(address.no_volume());
  if (!super) return std::unexpected(super.error());
  LCCFS_CHECK(objects::use_data_pool(*store, super->record));
  return OpenVolume{std::move(store), super->record};
}

Result<Ino> inode_of(const OpenVolume& volume, const Place& place) {
  if (place.ino) return *place.ino;
  return survey::find_inode(objects::reader_of(*volume.store), volume.super.uuid, place.path);
}

}  // namespace lccfs::cli
