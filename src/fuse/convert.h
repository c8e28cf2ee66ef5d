// SPDX-License-Identifier: LGPL-2.1-or-later
// Between the facade's types and the kernel's. Pure functions.
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cstdint>
#include <ctime>
#include <optional>

#include "fuse/fuse_api.h"
#include "lccfs/file_system.h"

namespace lccfs::fuse {

mode_t type_bits(FileType type);
/// nullopt: no type that a file system holds.
std::optional<FileType> type_of(mode_t mode);

struct stat to_stat(const Attributes& attributes);
struct statvfs to_statvfs(const VolumeUsage& usage);
double to_seconds(std::chrono::nanoseconds duration);
fuse_entry_param to_entry(const EntryReply& reply);

/// `to_set`: FUSE_SET_ATTR_*. `now`: for times that are to be the present.
SetAttributes to_changes(const struct stat& values, int to_set, TimeSpec now);

/// renameat2's flags; nullopt: one that we do not know.
std::optional<RenameMode> to_rename_mode(unsigned flags);
std::optional<XattrMode> to_xattr_mode(int flags);

}  // namespace lccfs::fuse
