// SPDX-License-Identifier: LGPL-2.1-or-later
#include "instance/absence.h"

#include <algorithm>

namespace lccfs {

ObservedSeries::Time ObservedSeries::note(Time began, Time ended) {
  if (ended - began > limits_.longest_observation) {
    break_off();
    return Time::zero();
  }
  if (!begun_ || began - last_ended_ > limits_.longest_gap) first_ended_ = ended;
  begun_ = true;
  last_ended_ = ended;
  return std::max(Time::zero(), began - first_ended_);
}

bool Absences::absent(InstanceId whom, Time began, Time ended) {
  return series_.try_emplace(whom, limits).first->second.note(began, ended) >= gone_after;
}

}  // namespace lccfs
