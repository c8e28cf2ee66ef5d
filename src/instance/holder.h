// SPDX-License-Identifier: LGPL-2.1-or-later
// Another instance that holds something: it is asked until it has given it back, or has expired (docs/DATA.md section
// 3). Blocking; not for threads that answer questions.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "instance/instance.h"

namespace lccfs {

/// Between two questions that were answered "busy": longer each time, because a holder that many ask answers so at
/// once. After an answer that took its time there is none but the first: who has released the lease gives way for an
/// eighth of a second alone (Lease::give_way).
class BusyPause {
 public:
  std::chrono::nanoseconds next(std::chrono::nanoseconds answer_took = {}) {
    if (answer_took >= long_answer) next_ = first;
    return std::exchange(next_, std::min<std::chrono::nanoseconds>(2 * next_, longest));
  }

 private:
  static constexpr std::chrono::milliseconds first{20};
  static constexpr std::chrono::milliseconds long_answer{400};  // a holder that has threads left takes half a second
  static constexpr std::chrono::milliseconds longest{500};
  std::chrono::nanoseconds next_ = first;
};

enum class Settled {
  answered,  ///< it has done what it was asked for, or holds it no more
  expired,   ///< what it holds is void, and fences are synced. For a read-only instance, which fences nobody, it may be
             ///< that the holder only did not answer: what is stored counts then
};
/// Asks until either is so, or until `still_holds` says no, or why not.
using StillHolds = std::function<Result<bool>()>;
Result<Settled> settle_holder(Instance& instance, InstanceId holder, format::Question question,
                              const StillHolds& still_holds);

}  // namespace lccfs
