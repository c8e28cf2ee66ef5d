// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/directory_activity.h"

#include <algorithm>

namespace lccfs {

namespace {
constexpr unsigned lookups_for_a_change = 4;
constexpr std::chrono::seconds counted_for{10};
constexpr std::chrono::nanoseconds shortest_pause = std::chrono::seconds(1), longest_pause = std::chrono::seconds(64);
}  // namespace

bool DirectoryActivity::changed(Ino directory) {
  const Lock lock(mutex_);
  auto& uses = uses_of(directory);
  return ++uses.changes >= after_changes_ && is_due(directory, uses);
}

bool DirectoryActivity::looked_up(Ino directory) {
  const Lock lock(mutex_);
  auto& uses = uses_of(directory);
  return ++uses.lookups >= lookups_for_a_change * after_changes_ && is_due(directory, uses);
}

bool DirectoryActivity::is_emptied(Ino directory) {
  const Lock lock(mutex_);
  return is_due(directory, uses_of(directory));
}

void DirectoryActivity::asked_for(Ino directory) {
  const Lock lock(mutex_);
  const auto now = clock_.elapsed();
  auto pause = shortest_pause;
  if (const auto* last = pauses_.get(directory, now)) {
    const bool was_taken_again = last->taken_at > last->asked_at && now - last->taken_at < counted_for;
    pause = was_taken_again ? std::min(2 * last->pause, longest_pause) : last->pause;
  }
  pauses_.put(directory, {now, pause, {}}, now + pause + counted_for, now);
}

DirectoryActivity::Uses& DirectoryActivity::uses_of(Ino directory) {
  const auto now = clock_.elapsed();
  if (auto* uses = uses_.get(directory, now)) return *uses;
  uses_.put(directory, {}, now + counted_for, now);
  return *uses_.get(directory, now);
}

bool DirectoryActivity::is_due(Ino directory, Uses& uses) {
  const auto now = clock_.elapsed();
  if (auto* pause = pauses_.get(directory, now)) {
    if (now < pause->asked_at + pause->pause) return false;
    pause->taken_at = now;
  }
  uses = {};
  return true;
}

}  // namespace lccfs
