// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/convert.h"

#include <linux/fs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fuse/fuse_api.h"

namespace lccfs::fuse {
namespace {

constexpr std::pair<FileType, mode_t> type_table[] = {
    {FileType::regular, S_IFREG},     {FileType::directory, S_IFDIR}, {FileType::symlink, S_IFLNK},
    {FileType::fifo, S_IFIFO},        {FileType::socket, S_IFSOCK},   {FileType::character_device, S_IFCHR},
    {FileType::block_device, S_IFBLK}};

// The others are EIO: what the store or a damaged object causes, a fence, and `guard_failed`, because operations answer
// their own lost races.
constexpr std::pair<ErrorCode, int> errno_table[] = {
    {ErrorCode::not_found, ENOENT},
    {ErrorCode::exists, EEXIST},
    {ErrorCode::no_space, ENOSPC},
    {ErrorCode::quota_exceeded, EDQUOT},
    {ErrorCode::unsupported, EOPNOTSUPP},
    {ErrorCode::permission_denied, EACCES},
    {ErrorCode::not_permitted, EPERM},
    {ErrorCode::invalid, EINVAL},
    {ErrorCode::busy, EBUSY},
    {ErrorCode::stale, ESTALE},
    {ErrorCode::not_directory, ENOTDIR},
    {ErrorCode::is_directory, EISDIR},
    {ErrorCode::not_empty, ENOTEMPTY},
    {ErrorCode::name_too_long, ENAMETOOLONG},
    {ErrorCode::cross_device, EXDEV},
    {ErrorCode::file_too_large, EFBIG},
    {ErrorCode::no_attribute, ENODATA},
    {ErrorCode::no_such_offset, ENXIO},
    {ErrorCode::range_too_small, ERANGE},
    {ErrorCode::bad_handle, EBADF},
    {ErrorCode::read_only, EROFS},
    {ErrorCode::too_many_links, EMLINK},
    {ErrorCode::would_block, EAGAIN},
    {ErrorCode::deadlock, EDEADLK},
    {ErrorCode::interrupted, EINTR},
    {ErrorCode::no_locks, ENOLCK},
};

constexpr std::pair<LockType, int> lock_types[] = {
    {LockType::none, F_UNLCK}, {LockType::shared, F_RDLCK}, {LockType::exclusive, F_WRLCK}};
constexpr std::pair<LockType, int> flock_types[] = {
    {LockType::none, LOCK_UN}, {LockType::shared, LOCK_SH}, {LockType::exclusive, LOCK_EX}};

TimeSpec to_time(const timespec& time) { return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)}; }

}  // namespace

mode_t type_bits(FileType type) {
  const auto* found = std::ranges::find(type_table, type, &std::pair<FileType, mode_t>::first);
  return found == std::end(type_table) ? 0 : found->second;
}

std::optional<FileType> type_of(mode_t mode) {
  const auto* found = std::ranges::find(type_table, mode & S_IFMT, &std::pair<FileType, mode_t>::second);
  if (found == std::end(type_table)) return std::nullopt;
  return found->first;
}

SetAttributes to_changes(const struct stat& values, int to_set, TimeSpec now) {
  const auto asked = [to_set](int what) { return (to_set & what) != 0; };
  SetAttributes changes;
  if (asked(FUSE_SET_ATTR_MODE)) changes.mode = values.st_mode & 07777;
  if (asked(FUSE_SET_ATTR_UID)) changes.uid = values.st_uid;
  if (asked(FUSE_SET_ATTR_GID)) changes.gid = values.st_gid;
  if (asked(FUSE_SET_ATTR_SIZE)) changes.size_bytes = static_cast<std::uint64_t>(values.st_size);
  if (asked(FUSE_SET_ATTR_ATIME)) changes.atime = to_time(values.st_atim);
  if (asked(FUSE_SET_ATTR_MTIME)) changes.mtime = to_time(values.st_mtim);
  if (asked(FUSE_SET_ATTR_ATIME_NOW)) changes.atime = now;
  if (asked(FUSE_SET_ATTR_MTIME_NOW)) changes.mtime = now;
  return changes;
}

std::optional<RenameMode> to_rename_mode(unsigned flags) {
  if (flags == 0) return RenameMode::replace;
  if (flags == RENAME_NOREPLACE) return RenameMode::no_replace;
  if (flags == RENAME_EXCHANGE) return RenameMode::exchange;
  return std::nullopt;
}

std::optional<SeekTo> to_seek(int whence) {
  if (whence == SEEK_DATA) return SeekTo::data;
  if (whence == SEEK_HOLE) return SeekTo::hole;
  return std::nullopt;
}

std::optional<XattrMode> to_xattr_mode(int flags) {
  if (flags == 0) return XattrMode::create_or_replace;
  if (flags == XATTR_CREATE) return XattrMode::create;
  if (flags == XATTR_REPLACE) return XattrMode::replace;
  return std::nullopt;
}

/// libfuse says a length; 0: to the end.
std::optional<LockRequest> to_lock_request(const struct flock& values, HandleId handle, std::uint64_t owner) {
  const auto* type = std::ranges::find(lock_types, values.l_type, &std::pair<LockType, int>::second);
  if (type == std::end(lock_types) || values.l_start < 0 || values.l_len < 0) return std::nullopt;
  LockRequest request{.handle = handle, .owner = owner, .type = type->first};
  request.first = static_cast<std::uint64_t>(values.l_start);
  request.pid = static_cast<std::uint32_t>(values.l_pid);
  if (values.l_len != 0) request.last = request.first + static_cast<std::uint64_t>(values.l_len) - 1;
  return request;
}

std::optional<LockRequest> to_flock_request(int operation, HandleId handle, std::uint64_t owner) {
  const auto* type = std::ranges::find(flock_types, operation & ~LOCK_NB, &std::pair<LockType, int>::second);
  if (type == std::end(flock_types)) return std::nullopt;
  LockRequest request{.handle = handle, .owner = owner, .kind = LockKind::flock, .type = type->first};
  request.waits = (operation & LOCK_NB) == 0;
  return request;
}

int lock_type_bits(LockType type) {
  return std::ranges::find(lock_types, type, &std::pair<LockType, int>::first)->second;
}

int errno_of(ErrorCode code) {
  const auto* found = std::ranges::find(errno_table, code, &std::pair<ErrorCode, int>::first);
  return found == std::end(errno_table) ? EIO : found->second;
}

bool is_for_the_log(ErrorCode code) {
  using enum ErrorCode;
  return code == corrupt || code == io || code == guard_failed || code == timed_out || code == permission_denied;
}

}  // namespace lccfs::fuse
