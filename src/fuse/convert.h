// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel's numbers and the facade's types. Pure functions.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <optional>

#include "lccfs/file_system.h"

namespace lccfs::fuse {

/// The only place where an errno is made of an error.
int errno_of(ErrorCode code);
/// No caller has caused it, but the store: the mount's log says what happened, because the errno does not. (The kernel lets
/// no caller through who may not.)
bool is_for_the_log(ErrorCode code);

mode_t type_bits(FileType type);
/// nullopt: no type that a file system holds.
std::optional<FileType> type_of(mode_t mode);

/// `to_set`: FUSE_SET_ATTR_*. `now`: for times that are to be the present.
SetAttributes to_changes(const struct stat& values, int to_set, TimeSpec now);

/// renameat2's flags; nullopt: one that we do not know.
std::optional<RenameMode> to_rename_mode(unsigned flags);
std::optional<XattrMode> to_xattr_mode(int flags);
/// As of lseek; nullopt: a way that the kernel goes by itself.
std::optional<SeekTo> to_seek(int whence);
/// fcntl(2)'s and flock(2)'s; nullopt: no such lock.
std::optional<LockRequest> to_lock_request(const struct flock& values, HandleId handle, std::uint64_t owner);
std::optional<LockRequest> to_flock_request(int operation, HandleId handle, std::uint64_t owner);
int lock_type_bits(LockType type);

}  // namespace lccfs::fuse
