// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/common/errors.h"

#include <cerrno>

namespace lccfs {

ErrorCode meaning_of(int number) {
  switch (number) {
    case ENOENT:
      return ErrorCode::not_found;
    case EEXIST:
      return ErrorCode::exists;
    case ENOSPC:
      return ErrorCode::no_space;
    case EDQUOT:
      return ErrorCode::quota_exceeded;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::permission_denied;
    case EFBIG:
      return ErrorCode::file_too_large;
    case ENAMETOOLONG:
      return ErrorCode::name_too_long;
    default:
      return ErrorCode::io;
  }
}

}  // namespace lccfs
