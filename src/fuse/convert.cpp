// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/convert.h"

#include <linux/fs.h>
#include <sys/xattr.h>

namespace lccfs::fuse {
namespace {

// What tools take for a good size of reads and writes; they multiply it, so it is not the object size.
constexpr int block_size_bytes = 4096;

timespec to_timespec(TimeSpec time) { return {.tv_sec = time.seconds, .tv_nsec = static_cast<long>(time.nanoseconds)}; }

TimeSpec to_time(const timespec& time) { return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)}; }

}  // namespace

mode_t type_bits(FileType type) {
  switch (type) {
    case FileType::regular:
      return S_IFREG;
    case FileType::directory:
      return S_IFDIR;
    case FileType::symlink:
      return S_IFLNK;
    case FileType::fifo:
      return S_IFIFO;
    case FileType::socket:
      return S_IFSOCK;
    case FileType::character_device:
      return S_IFCHR;
    case FileType::block_device:
      return S_IFBLK;
  }
  return 0;
}

std::optional<FileType> type_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return FileType::regular;
    case S_IFDIR:
      return FileType::directory;
    case S_IFLNK:
      return FileType::symlink;
    case S_IFIFO:
      return FileType::fifo;
    case S_IFSOCK:
      return FileType::socket;
    case S_IFCHR:
      return FileType::character_device;
    case S_IFBLK:
      return FileType::block_device;
    default:
      return std::nullopt;
  }
}

struct stat to_stat(const Attributes& attributes) {
  struct stat result = {};
  result.st_ino = attributes.ino.value;
  result.st_mode = type_bits(attributes.type) | (attributes.mode & 07777);
  result.st_nlink = attributes.nlink;
  result.st_uid = attributes.uid;
  result.st_gid = attributes.gid;
  result.st_rdev = attributes.rdev;
  result.st_size = static_cast<off_t>(attributes.size_bytes);
  result.st_blksize = block_size_bytes;
  result.st_blocks = static_cast<blkcnt_t>(attributes.blocks_512);
  result.st_atim = to_timespec(attributes.atime);
  result.st_mtim = to_timespec(attributes.mtime);
  result.st_ctim = to_timespec(attributes.ctime);
  return result;
}

// Of files, nothing counts them or limits them but the store's space: those there are at most as many as objects, and one
// more takes about a block.
struct statvfs to_statvfs(const VolumeUsage& usage) {
  struct statvfs result = {};
  result.f_bsize = block_size_bytes;
  result.f_frsize = block_size_bytes;
  result.f_blocks = usage.total_bytes / block_size_bytes;
  result.f_bfree = result.f_bavail = usage.available_bytes / block_size_bytes;
  result.f_ffree = result.f_favail = result.f_bavail;
  result.f_files = usage.objects + result.f_ffree;
  result.f_namemax = 255;
  return result;
}

double to_seconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }

fuse_entry_param to_entry(const EntryReply& reply) {
  fuse_entry_param result = {};
  result.ino = reply.attributes.ino.value;
  result.generation = 0;  // inode numbers are never used again
  result.attr = to_stat(reply.attributes);
  result.attr_timeout = to_seconds(reply.attributes_ttl);
  result.entry_timeout = to_seconds(reply.entry_ttl);
  return result;
}

SetAttributes to_changes(const struct stat& values, int to_set, TimeSpec now) {
  SetAttributes changes;
  if ((to_set & FUSE_SET_ATTR_MODE) != 0) changes.mode = values.st_mode & 07777;
  if ((to_set & FUSE_SET_ATTR_UID) != 0) changes.uid = values.st_uid;
  if ((to_set & FUSE_SET_ATTR_GID) != 0) changes.gid = values.st_gid;
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) changes.size_bytes = static_cast<std::uint64_t>(values.st_size);
  if ((to_set & FUSE_SET_ATTR_ATIME_NOW) != 0)
    changes.atime = now;
  else if ((to_set & FUSE_SET_ATTR_ATIME) != 0)
    changes.atime = to_time(values.st_atim);
  if ((to_set & FUSE_SET_ATTR_MTIME_NOW) != 0)
    changes.mtime = now;
  else if ((to_set & FUSE_SET_ATTR_MTIME) != 0)
    changes.mtime = to_time(values.st_mtim);
  return changes;
}

std::optional<RenameMode> to_rename_mode(unsigned flags) {
  switch (flags) {
    case 0:
      return RenameMode::replace;
    case RENAME_NOREPLACE:
      return RenameMode::no_replace;
    case RENAME_EXCHANGE:
      return RenameMode::exchange;
    default:
      return std::nullopt;
  }
}

std::optional<XattrMode> to_xattr_mode(int flags) {
  switch (flags) {
    case 0:
      return XattrMode::create_or_replace;
    case XATTR_CREATE:
      return XattrMode::create;
    case XATTR_REPLACE:
      return XattrMode::replace;
    default:
      return std::nullopt;
  }
}

}  // namespace lccfs::fuse
