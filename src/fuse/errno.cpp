// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cerrno>

#include "fuse/reply.h"

namespace lccfs::fuse {

int errno_of(ErrorCode code) {
  switch (code) {  // no default: the compiler names what is missing
    case ErrorCode::not_found:
      return ENOENT;
    case ErrorCode::exists:
      return EEXIST;
    case ErrorCode::guard_failed:  // operations answer their own lost races; what arrives here was forgotten
    case ErrorCode::fenced:
    case ErrorCode::corrupt:
    case ErrorCode::timed_out:
    case ErrorCode::io:
      return EIO;
    case ErrorCode::no_space:
      return ENOSPC;
    case ErrorCode::quota_exceeded:
      return EDQUOT;
    case ErrorCode::unsupported:
      return EOPNOTSUPP;
    case ErrorCode::permission_denied:
      return EACCES;
    case ErrorCode::not_permitted:
      return EPERM;
    case ErrorCode::invalid:
      return EINVAL;
    case ErrorCode::busy:
      return EBUSY;
    case ErrorCode::stale:
      return ESTALE;
    case ErrorCode::not_directory:
      return ENOTDIR;
    case ErrorCode::is_directory:
      return EISDIR;
    case ErrorCode::not_empty:
      return ENOTEMPTY;
    case ErrorCode::name_too_long:
      return ENAMETOOLONG;
    case ErrorCode::cross_device:
      return EXDEV;
    case ErrorCode::file_too_large:
      return EFBIG;
    case ErrorCode::no_attribute:
      return ENODATA;
    case ErrorCode::range_too_small:
      return ERANGE;
    case ErrorCode::bad_handle:
      return EBADF;
    case ErrorCode::read_only:
      return EROFS;
    case ErrorCode::too_many_links:
      return EMLINK;
  }
  return EIO;
}

}  // namespace lccfs::fuse
