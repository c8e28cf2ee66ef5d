// SPDX-License-Identifier: LGPL-2.1-or-later
// What the kernel asks for, by the names that the metrics and the log have for it.
#pragma once

#include <array>
#include <cstdint>

#include "metrics/operations.h"

namespace lccfs::fuse {

enum class Kind : std::uint8_t {
  statfs,
  lookup,
  mknod,
  mkdir,
  symlink,
  create,
  unlink,
  rmdir,
  rename,
  link,
  readlink,
  opendir,
  readdir,
  readdirplus,
  releasedir,
  fsyncdir,
  getattr,
  setattr,
  getxattr,
  listxattr,
  setxattr,
  removexattr,
  open,
  read,
  write,
  flush,
  fsync,
  fallocate,
  lseek,
  copy_file_range,
  release,
  getlk,
  setlk,
  setlk_wait,  ///< those that wait until the lock is free
  flock,
  flock_wait,
};

/// In the order of Kind.
inline constexpr auto operation_kinds = std::to_array<metrics::OperationKind>({
    {"statfs"},
    {"lookup"},
    {"mknod"},
    {"mkdir"},
    {"symlink"},
    {"create"},
    {"unlink"},
    {"rmdir"},
    {"rename"},
    {"link"},
    {"readlink"},
    {"opendir"},
    {"readdir"},
    {"readdirplus"},
    {"releasedir"},
    {"fsyncdir"},
    {"getattr"},
    {"setattr"},
    {"getxattr"},
    {"listxattr"},
    {"setxattr"},
    {"removexattr"},
    {"open"},
    {"read", metrics::OperationKind::Moves::out},
    {"write", metrics::OperationKind::Moves::in},
    {"flush"},
    {"fsync"},
    {"fallocate"},
    {"lseek"},
    {"copy_file_range"},
    {"release"},
    {"getlk"},
    {"setlk"},
    {"setlk_wait", metrics::OperationKind::Moves::nothing, true},
    {"flock"},
    {"flock_wait", metrics::OperationKind::Moves::nothing, true},
});
static_assert(operation_kinds.size() == static_cast<std::size_t>(Kind::flock_wait) + 1);
static_assert(operation_kinds.size() <= metrics::Operations::most_kinds);

inline const char* name_of(Kind kind) { return operation_kinds[static_cast<std::size_t>(kind)].name; }

}  // namespace lccfs::fuse
