// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "lccfs/result.h"

namespace lccfs {

/// Bytes that were answered before the store had them, and are lost, and that no fsync nor close has told a program of: the
/// end of the mount tells (docs/DATA.md section 10). Any thread.
class Losses {
 public:
  /// `what` names the object, and says why.
  void note(ErrorCode why, std::string what) EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    if (!first_) first_ = Error{why, std::move(what)};
  }
  /// The first of them as an error.
  Result<> first() const EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    return first_ ? Result<>(std::unexpected(*first_)) : Result<>{};
  }

 private:
  mutable Mutex mutex_;
  std::optional<Error> first_ GUARDED_BY(mutex_);
};

}  // namespace lccfs
