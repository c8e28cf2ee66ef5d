// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/descriptor.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace lccfs::local {
namespace {

ErrorCode meaning(int number) {
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

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Error system_error(const std::string& what, Outcome outcome) { return system_error(errno, what, outcome); }

Error system_error(int number, const std::string& what, Outcome outcome) {
  return {meaning(number), what + ": " + std::generic_category().message(number), outcome};
}

Result<> sync_directory(int directory, const std::string& what) {
  if (::fsync(directory) != 0) return std::unexpected(system_error("fsync " + what, Outcome::unknown));
  return {};
}

}  // namespace lccfs::local
