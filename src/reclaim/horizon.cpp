// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/horizon.h"

#include <utility>

namespace lccfs::reclaim {

Horizon::Horizon(const Roll& roll, Resolve resolve) : resolve_(std::move(resolve)) {
  for (const auto& member : roll.members) {
    if (member.standing == Member::Standing::over) {
      over_.insert(member.id);
    } else {
      lowest_running_[member.id] = member.lowest_running;
    }
  }
}

Result<Horizon::Verdict> Horizon::judge(Token token) {
  if (const auto living = lowest_running_.find(token.instance); living != lowest_running_.end()) {
    return token.number < living->second ? Verdict::over : Verdict::not_over;
  }
  {
    const std::lock_guard lock(mutex_);
    if (over_.contains(token.instance)) return Verdict::over;
  }
  LCCFS_TRY(const bool over, resolve_(token.instance));
  if (!over) return Verdict::not_over;
  const std::lock_guard lock(mutex_);
  over_.insert(token.instance);
  return Verdict::over_since_now;
}

}  // namespace lccfs::reclaim
