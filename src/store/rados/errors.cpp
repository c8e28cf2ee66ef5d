// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/errors.h"

#include <cerrno>
#include <system_error>

#include "store/common/errors.h"

namespace lccfs::rados {
namespace {

ErrorCode to_code(int status) {
  switch (-status) {
    case ECANCELED:  // cmpxattr, omap_cmp
    case ERANGE:     // assert_version: the object has moved on
    case EOVERFLOW:  // assert_version: the object is older
      return ErrorCode::guard_failed;
    case ESHUTDOWN:  // blocklisted
      return ErrorCode::fenced;
    case ETIMEDOUT:
      return ErrorCode::timed_out;
    case EINVAL:
      return ErrorCode::invalid;
    case EOPNOTSUPP:
      return ErrorCode::unsupported;
    default:
      return meaning_of(-status);
  }
}

std::string explain(ErrorCode code, int status) {
  switch (code) {
    case ErrorCode::guard_failed:
    case ErrorCode::not_found:
    case ErrorCode::exists:
    case ErrorCode::no_space:
    case ErrorCode::quota_exceeded:
      return describe(code);
    case ErrorCode::fenced:
      return "this client was fenced (its address is on the cluster's blocklist)";
    case ErrorCode::permission_denied:
      return "the cluster does not permit this to our key; lccfs auth prints what a key needs";
    default:
      return reason(status);
  }
}

/// A fenced client's step may have been applied before the fence, and its answer lost.
bool leaves_open(ErrorCode code) { return code == ErrorCode::timed_out || code == ErrorCode::fenced; }

}  // namespace

std::string reason(int status) { return std::generic_category().message(-status); }

bool is_gone(librados::IoCtx& pool) {
  bool aligned = false;  // any question about the pool will do that, unlike that for its name, waits for no newer map
  return pool.pool_requires_alignment2(&aligned) == -ENOENT;
}

Error to_error(int status, std::string_view what, Effect effect) {
  const ErrorCode code = to_code(status);
  const bool unknown = effect == Effect::writes && leaves_open(code);
  return Error{code, std::string(what) + ": " + explain(code, status), unknown ? Outcome::unknown : Outcome::definite};
}

Error to_error(librados::IoCtx& pool, int status, std::string_view what, Effect effect) {
  if (status == -ENOENT && is_gone(pool))
    return Error{ErrorCode::io, std::string(what) + ": its pool is gone (somebody has deleted it)", Outcome::definite};
  return to_error(status, what, effect);
}

}  // namespace lccfs::rados
