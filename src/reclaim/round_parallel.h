// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/parallel.h"
#include "reclaim/round.h"

namespace lccfs::reclaim {

/// work(i) -> Result<>, `jobs` at a time. What cannot be read is noted as damage and left; any other error ends it.
template <class Work>
Result<> Round::in_parallel(std::size_t count, const Work& work) {
  Result<> result;
  for_each_in_parallel(count, options_.jobs, [&](std::size_t i) {
    if (stop_.stop_requested()) return;
    Result<> one = work(i);
    if (one) return;
    if (is_damage(one.error())) return note_damage(one.error());
    const std::lock_guard lock(mutex_);
    result = std::move(one);
  });
  return result;
}

}  // namespace lccfs::reclaim
