// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/rename_lock.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "reclaim/settle.h"
#include "txn/volume_txn.h"

namespace lccfs {

namespace {
constexpr std::chrono::milliseconds first_pause{2};
constexpr std::chrono::milliseconds longest_pause{200};
}  // namespace

std::chrono::nanoseconds RenamePatience::at(std::chrono::nanoseconds now) const {
  const Lock lock(mutex_);
  return now - changed_at_ < kept_for ? patience_ : shortest;
}

void RenamePatience::was_too_short(std::chrono::nanoseconds patience, std::chrono::nanoseconds now) {
  const auto present = at(now);
  const Lock lock(mutex_);
  patience_ = std::min<std::chrono::nanoseconds>(std::max(present, 2 * patience), longest);
  changed_at_ = now;
}

Result<RenameLock::Seen> RenameLock::look() {
  LCCFS_TRY(auto super, instance_.query({.object = format::super_object, .keys = {format::rename_lock_key}}));
  Seen seen;
  const auto found = super.keys.find(format::rename_lock_key);
  if (found == super.keys.end()) return seen;
  seen.raw = std::move(found->second);
  auto record = format::decode<format::RenameLockRecord>(*seen.raw);
  if (!record) return std::unexpected(format::damage_of("Super: rename", record.error()));
  seen.record = *record;
  return seen;
}

/// Any answer will do. The question is one that changes nothing there: locks of a directory are nobody's.
RenameLock::Owner RenameLock::ask(const format::RenameLockRecord& held, std::chrono::nanoseconds time_out) {
  if (held.token.instance == instance_.id()) return Owner::answers;
  format::Question question{format::Question::Kind::locks_changed, held.to};
  question.asker = instance_.id();
  const auto answer =
      instance_.ask(held.token.instance, question, std::chrono::ceil<std::chrono::milliseconds>(time_out));
  if (!answer || *answer == Instance::AskResult::nobody) return Owner::is_gone;
  return *answer == Instance::AskResult::silent ? Owner::is_silent : Owner::answers;
}

bool RenameLock::is_left_to_owner(const Seen& seen, std::chrono::nanoseconds unchanged_for) {
  if (unchanged_for < RenamePatience::shortest) return true;
  const auto patience = patience_.at(instance_.clock().elapsed());
  const auto owner = ask(*seen.record, patience / 10);
  if (owner == Owner::is_gone) return false;
  if (owner == Owner::answers && unchanged_for < patience) return true;
  patience_.was_too_short(patience, instance_.clock().elapsed());
  return false;
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
    const auto unchanged_for = clock.elapsed() - unchanged_since;
    if (seen.is_held() && is_left_to_owner(seen, unchanged_for)) {
      clock.sleep_for(unchanged_for < RenamePatience::shortest ? pause : look_again_after);
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
  log::failed(log::Level::warning, "the rename lock is left to the next move that wants it", released.error());
}

}  // namespace lccfs
