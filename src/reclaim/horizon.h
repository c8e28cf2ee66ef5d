// SPDX-License-Identifier: LGPL-2.1-or-later
// Which traces are over (docs/ORDERING.md section 2), as one roll call has shown it. Any thread.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "instance/roll_call.h"

namespace lccfs::reclaim {

class Horizon {
 public:
  /// Says of an instance that is not on the roll whether it is over: it has no record, or has begun later. Fences are
  /// synced when it says so.
  using Resolve = std::function<Result<bool>(InstanceId)>;

  Horizon(const Roll& roll, Resolve resolve);

  enum class Verdict {
    over,
    not_over,
    over_since_now,  ///< what was read before this answer proves nothing: it is to be read again
  };
  Result<Verdict> judge(Token token);

 private:
  std::map<InstanceId, std::uint64_t> lowest_running_;  // of those that live; 0: silent
  const Resolve resolve_;
  std::mutex mutex_;  // guards over_
  std::set<InstanceId> over_;
};

}  // namespace lccfs::reclaim
