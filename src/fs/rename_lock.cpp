// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/rename_lock.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "reclaim/settle.h"
#include "txn/volume_txn.h"

namespace lccfs {

namespace {
/// A move takes some ten steps. Longer than those of a store that is in trouble: else two clients there would take the
/// lock from each other for ever.
constexpr std::chrono::seconds taken_over_after{10};
constexpr std::chrono::milliseconds first_pause{2};
constexpr std::chrono::milliseconds longest_pause{200};
}  // namespace

Result<RenameLock::Seen> RenameLock::look() {
  LCCFS_TRY(auto super,
            instance_.query({.object = format::super_object, .ranges = {}, .keys = {format::rename_lock_key}}));
  Seen seen;
  const auto found = super.keys.find(format::rename_lock_key);
  if (found == super.keys.end()) return seen;
  seen.raw = std::move(found->second);
  auto record = format::decode<format::RenameLockRecord>(*seen.raw);
  if (!record) return std::unexpected(format::damage_of("Super: rename", record.error()));
  seen.record = *record;
  return seen;
}

/// false: another was first.
Result<bool> RenameLock::replace(const Seen& seen) {
  const auto taken = instance_.run_repeatable(txn::take_rename_lock(seen.raw, mine_));
  if (taken) return true;
  if (taken.error().code != ErrorCode::guard_failed) return std::unexpected(taken.error());
  LCCFS_TRY(const auto now, look());  // an earlier run of the step may have done it
  return now.record == mine_;
}

Result<> RenameLock::take() {
  auto& clock = instance_.clock();
  std::optional<Bytes> last;
  auto unchanged_since = clock.elapsed();
  std::chrono::nanoseconds pause = first_pause;
  while (!is_held_) {
    LCCFS_TRY(const auto seen, look());
    if (seen.raw != last) {
      last = seen.raw;
      unchanged_since = clock.elapsed();
      pause = first_pause;
    }
    if (seen.is_held() && clock.elapsed() - unchanged_since < taken_over_after) {
      clock.sleep_for(pause);
      pause = std::min<std::chrono::nanoseconds>(2 * pause, longest_pause);
      continue;
    }
    if (seen.is_held()) {
      log::warning("the rename lock is taken over from instance " + std::to_string(seen.record->token.instance.value));
      LCCFS_CHECK(reclaim::decide_move(instance_, {seen.record->token, seen.record->to}));
    }
    LCCFS_TRY(is_held_, replace(seen));
  }
  return {};
}

void RenameLock::release() {
  is_held_ = false;
  const auto released = instance_.run_repeatable(txn::release_rename_lock(mine_));
  if (released || released.error().code == ErrorCode::guard_failed) return;
  log::warning("the rename lock is left to the next move that wants it: " + released.error().context);
}

}  // namespace lccfs
