// SPDX-License-Identifier: LGPL-2.1-or-later
// One operation of one client, as a value: printed, done by a client, and done by the model.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fs/acl.h"
#include "support/paths.h"

namespace lccfs::crash {

struct Call {
  enum class Kind {
    create,  ///< open(2) with O_CREAT and O_EXCL, and close
    mkfile,  ///< mknod(2) of a regular file
    mkdir,
    mkfifo,
    symlink,
    link,  ///< `path` gets the name `other`, too
    unlink,
    rmdir,
    rename,
    rename_no_replace,
    exchange,
    chmod,
    write,   ///< open, pwrite, close
    append,  ///< the same with O_APPEND
    read,    ///< open, pread, close
    truncate,
    punch,  ///< open, fallocate, close
    zero,   ///< the same with ZERO_RANGE
    copy,   ///< open both, copy_file_range, close both
    set_xattr,
    remove_xattr,
    set_acl,  ///< an access ACL (acl_with)
  };
  Kind kind;
  std::string path;
  std::string other{};     ///< the new name; the symlink's target; the xattr's name; what a copy is made from
  std::uint32_t mode = 0;  ///< permission bits
  std::uint64_t offset_bytes = 0, size_bytes = 0;
  char letter = 0;               ///< what is written, or the xattr's value
  std::uint64_t from_bytes = 0;  ///< of a copy: where it begins there

  /// What it does. An inode that has just gone under its path is looked up once more, as the kernel does.
  Result<> operator()(test::Paths& at) const;
  /// The same, and what it answers: "ok", the bytes that were read (runs_of), or the meaning of the error.
  std::string perform(test::Paths& at) const;
};

/// What a program sees of a call that makes, removes or moves names. An inode that has just gone under its path is
/// looked up once more, as the kernel does; names in a directory that is gone, and in which the program stays, are not
/// found (some kernels and calls say "stale").
Result<> on_names(const std::function<Result<>()>& once);

/// Somebody is named in it; it has these permissions.
Acl acl_with(std::uint32_t mode);

/// Or reads it; the others make, remove or move names.
bool changes_an_inode(Call::Kind kind);
/// What of it a crash may leave alone: of a hole, zeros or a copy what lies in one object; of a write, itself.
std::vector<Call> pieces_of(const Call& call, std::uint64_t object_size_bytes);
std::string text_of(const Call& call);
std::string text_of(const Result<>& result);

}  // namespace lccfs::crash
