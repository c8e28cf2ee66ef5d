// SPDX-License-Identifier: LGPL-2.1-or-later
// How every function of this project reports failure: a meaning, not an errno (src/fuse makes one for the kernel).
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace lccfs {

enum class ErrorCode {
  not_found,          ///< no such name, object, pool or volume
  exists,             ///< the name or object is there already
  guard_failed,       ///< a guard of a transaction did not hold: nothing was applied by this run of it
  fenced,             ///< this client was fenced (or its instance is expired): it can do no more steps, ever
  no_space,           ///< the store is full
  quota_exceeded,     ///< the pool's quota is reached
  corrupt,            ///< bytes that no version of ours wrote; the context names the object
  unsupported,        ///< a newer format, an unknown flag, something that this version cannot do
  timed_out,          ///< the store did not answer within the deadline (only where one was asked for)
  permission_denied,  ///< EACCES, or the store refused our key
  not_permitted,      ///< EPERM
  invalid,            ///< an argument out of its range
  busy,               ///< it is in use; try again
  stale,              ///< an inode that is gone (ESTALE)
  not_directory,
  is_directory,
  not_empty,
  name_too_long,
  cross_device,  ///< a move between directories, in a volume without the feature "moves" (EXDEV)
  file_too_large,
  no_attribute,     ///< no such extended attribute (ENODATA)
  no_such_offset,   ///< no data, or nothing at all, from there on (ENXIO)
  range_too_small,  ///< the caller's buffer is too small (ERANGE)
  bad_handle,       ///< no such open file, or not open for this
  read_only,
  too_many_links,
  would_block,  ///< another owner has a lock there (EAGAIN)
  deadlock,     ///< to wait for that lock would be to wait for oneself (EDEADLK)
  interrupted,  ///< the caller was told to wait no more (EINTR)
  no_locks,     ///< the lock cannot be kept (ENOLCK)
  io,           ///< anything else that the store reports
};

/// Whether the thing asked for has certainly (not) happened. A step with an unknown outcome may have been
/// applied, may be applied later, or never (docs/PROTOCOL.md, rule 5).
enum class Outcome { definite, unknown };

struct Error {
  ErrorCode code = ErrorCode::io;
  std::string context;  ///< one line for people: what was tried on which object, and why it failed
  Outcome outcome = Outcome::definite;
};

template <class T = void>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> failure(ErrorCode code, std::string context,
                                                    Outcome outcome = Outcome::definite) {
  return std::unexpected(Error{code, std::move(context), outcome});
}

/// The store is full, or a quota of it is reached.
inline bool is_out_of_space(const Error& error) {
  return error.code == ErrorCode::no_space || error.code == ErrorCode::quota_exceeded;
}

/// A stable, human-readable name of the code ("no space left").
const char* describe(ErrorCode code);

}  // namespace lccfs

#define LCCFS_CONCAT_(a, b) a##b
#define LCCFS_CONCAT(a, b) LCCFS_CONCAT_(a, b)
#define LCCFS_TRY_(tmp, target, expression)                 \
  auto tmp = (expression);                                  \
  if (!tmp) return std::unexpected(std::move(tmp).error()); \
  target = std::move(*tmp)

/// LCCFS_TRY(auto x, f()): x is f's value, or the function returns f's error.
#define LCCFS_TRY(target, expression) LCCFS_TRY_(LCCFS_CONCAT(lccfs_try_, __LINE__), target, expression)

/// LCCFS_CHECK(f()): the function returns f's error if it has one (for Result<void>, or a value not wanted).
#define LCCFS_CHECK(expression) \
  if (auto lccfs_check = (expression); !lccfs_check) return std::unexpected(std::move(lccfs_check).error())
