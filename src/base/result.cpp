// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lccfs/result.h"

namespace lccfs {

const char* describe(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
      return "not found";
    case ErrorCode::exists:
      return "exists already";
    case ErrorCode::guard_failed:
      return "changed meanwhile";
    case ErrorCode::fenced:
      return "this client was fenced";
    case ErrorCode::no_space:
      return "no space left";
    case ErrorCode::quota_exceeded:
      return "quota reached";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::unsupported:
      return "not supported";
    case ErrorCode::timed_out:
      return "timed out";
    case ErrorCode::permission_denied:
      return "permission denied";
    case ErrorCode::not_permitted:
      return "not permitted";
    case ErrorCode::invalid:
      return "invalid";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::stale:
      return "inode is gone";
    case ErrorCode::not_directory:
      return "not a directory";
    case ErrorCode::is_directory:
      return "is a directory";
    case ErrorCode::not_empty:
      return "directory is not empty";
    case ErrorCode::name_too_long:
      return "name too long";
    case ErrorCode::cross_device:
      return "rename across directories";
    case ErrorCode::file_too_large:
      return "file too large";
    case ErrorCode::no_attribute:
      return "no such extended attribute";
    case ErrorCode::no_such_offset:
      return "nothing from there on";
    case ErrorCode::range_too_small:
      return "buffer too small";
    case ErrorCode::bad_handle:
      return "bad handle";
    case ErrorCode::read_only:
      return "read-only";
    case ErrorCode::too_many_links:
      return "too many links";
    case ErrorCode::would_block:
      return "locked";
    case ErrorCode::deadlock:
      return "deadlock of locks";
    case ErrorCode::interrupted:
      return "interrupted";
    case ErrorCode::no_locks:
      return "no more locks";
    case ErrorCode::io:
      return "input/output error";
  }
  return "unknown error";
}

}  // namespace lccfs
