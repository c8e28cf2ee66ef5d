// SPDX-License-Identifier: LGPL-2.1-or-later
// Errors that say no more than that there is nothing to read, or nothing left to do.
#pragma once

#include <optional>
#include <utility>

#include "lccfs/result.h"

namespace lccfs {

/// Of a read: `not_found` is nullopt.
template <class T>
Result<std::optional<T>> or_none(Result<T> result) {
  if (result) return std::move(*result);
  if (result.error().code == ErrorCode::not_found) return std::nullopt;
  return std::unexpected(std::move(result).error());
}

/// Of what is done with that error, too: an earlier run or another client has done it, or what it was for is gone.
template <class T>
Result<> done_or(ErrorCode code, const Result<T>& result) {
  if (result || result.error().code == code) return {};
  return std::unexpected(result.error());
}

}  // namespace lccfs
