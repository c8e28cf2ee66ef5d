// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/round.h"

#include "base/log.h"
#include "reclaim/round_parallel.h"
#include "txn/instance_txn.h"

namespace lccfs::reclaim {

using format::QueueItem;

namespace {
OtherInstance describe(const Member& member) { return {member.id, member.record.host, member.record.pid}; }
}  // namespace

Round::Round(Instance& instance, const CollectorOptions& options, const Recount& recount, PassReport& report,
             const std::stop_token& stop)
    : instance_(instance), options_(options), recount_(recount), report_(report), stop_(stop) {}

Result<bool> Round::run() {
  LCCFS_TRY(const auto roll, instance_.call_roll({}));
  horizon_.emplace(roll, [this](InstanceId whom) { return instance_.ensure_over(whom); });
  report_.items_left = 0;
  report_.open_elsewhere = 0;
  report_.silent.clear();
  somebody_is_silent_ = !roll.all_answered();
  for (const auto& member : roll.members) {
    if (member.fenced_now) report_.gone.push_back(describe(member));
    did_something_ = did_something_ || member.fenced_now;  // its record goes in the next round
    if (member.standing == Member::Standing::silent) report_.silent.push_back(describe(member));
  }
  for (const auto& member : roll.members) {
    if (stop_.stop_requested()) return false;
    LCCFS_CHECK(consume(member));
    if (member.standing == Member::Standing::over) LCCFS_CHECK(remove_instance(member));
  }
  return did_something_;
}

Result<> Round::consume(const Member& member) {
  QueuePage page;
  do {
    LCCFS_TRY(page, read_queue_page(recount_.query(), member.id, page.last_key));
    for (const auto& line : page.damaged) note_damage({ErrorCode::corrupt, line});
    std::erase_if(page.items, [&](const NumberedItem& one) {
      const bool due = is_due(member, one, instance_.clock().wall_time(), options_.grace);
      if (!due && !is_intent(member, one)) ++report_.items_left;
      return !due;
    });
    LCCFS_TRY(const auto done, handle(page.items));
    report_.items_left += page.items.size() - done.size();
    if (done.empty()) continue;
    const auto removed = instance_.run_repeatable(txn::remove_queue_items(member.id, done));
    if (!removed && removed.error().code != ErrorCode::not_found) return std::unexpected(removed.error());
    report_.items_done += done.size();
    did_something_ = true;
  } while (page.more && !stop_.stop_requested());
  return {};
}

/// The numbers of the items that were dealt with.
Result<std::vector<std::uint64_t>> Round::handle(const std::vector<NumberedItem>& items) {
  std::vector<Ino> directories, inodes;
  for (const auto& [number, item] : items) {
    if (item.kind == QueueItem::Kind::directory) directories.push_back(item.ino);
    if (item.kind == QueueItem::Kind::inode) inodes.push_back(item.ino);
  }
  const auto logged = items.empty() ? TimeSpec{} : items.front().item.time;
  LCCFS_TRY(const auto quiet_directories, handle_directories(directories, logged));
  LCCFS_TRY(const auto quiet_inodes, handle_inodes(inodes, logged));
  std::vector<std::uint64_t> done;
  for (const auto& [number, item] : items) {
    if (item.kind == QueueItem::Kind::range) {
      LCCFS_TRY(const bool quiet, handle_range(item));
      if (quiet) done.push_back(number);
    } else if ((item.kind == QueueItem::Kind::directory ? quiet_directories : quiet_inodes).contains(item.ino)) {
      done.push_back(number);
    }
  }
  return done;
}

/// An instance that is over writes nothing more: an empty queue stays empty.
Result<> Round::remove_instance(const Member& member) {
  const auto session =
      instance_.query({.object = format::session_object(member.id), .ranges = {{"q/", "", 1}}, .keys = {}});
  if (!session && session.error().code != ErrorCode::not_found) return std::unexpected(session.error());
  if (session && !session->ranges.front().entries.empty()) return {};
  const auto removed = instance_.run_repeatable(txn::remove_session(member.id));
  if (!removed && removed.error().code != ErrorCode::not_found) return std::unexpected(removed.error());
  const auto gone = instance_.run_repeatable(txn::remove_instance_record(member.id, member.raw));
  if (!gone && gone.error().code != ErrorCode::guard_failed) return std::unexpected(gone.error());
  if (gone) ++report_.instances_removed;
  return {};
}

void Round::note_damage(const Error& error) {
  log::warning(error.context + ": left alone; run lccfs-fsck");
  const std::lock_guard lock(mutex_);
  report_.damaged.push_back(error.context);
}

}  // namespace lccfs::reclaim
