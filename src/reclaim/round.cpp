// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/round.h"

#include <algorithm>
#include <ranges>
#include <tuple>
#include <utility>

#include "base/expected_errors.h"
#include "base/log.h"
#include "txn/volume_txn.h"

namespace lccfs::reclaim {

using format::QueueItem;

namespace {
constexpr std::size_t items_at_once = 1024;

OtherInstance describe(const Member& member) { return {member.id, member.record.host, member.record.pid}; }
}  // namespace

Round::Round(Instance& instance, const CollectorOptions& options, const Recount& recount, PassReport& report,
             std::set<std::string>& damage_told, Instance::Turn turn, const std::stop_token& stop)
    : instance_(instance),
      options_(options),
      recount_(recount),
      report_(report),
      turn_(turn),
      stop_(stop),
      reader_(recount.reader()),
      damage_told_(damage_told) {}

Result<bool> Round::run() {
  LCCFS_TRY(const auto poll, instance_.poll_liveness({}, stop_, turn_));
  horizon_.emplace(poll, [this](InstanceId whom) { return instance_.ensure_expired(whom); });
  report_.items_left = 0;
  report_.open_elsewhere = 0;
  report_.silent.clear();
  silent_calls_ = poll.all_answered() ? 0 : 1;
  note_gone(poll);
  for (const auto& member : poll.members) {
    if (member.standing == Member::Standing::silent) report_.silent.push_back(describe(member));
    if (member.standing == Member::Standing::expired) expired_.insert(member.id);
  }
  LCCFS_CHECK(see_to_what_the_dead_made(poll));
  for (const auto& member : poll.members) LCCFS_CHECK(read_queue(member, Items::all));
  LCCFS_CHECK(handle_due());
  for (const auto& member : poll.members) {
    if (member.standing == Member::Standing::expired && !stop_.stop_requested()) LCCFS_CHECK(remove_instance(member));
  }
  return did_something_;
}

void Round::note_gone(const PollResult& poll) {
  report_.is_for_others = std::ranges::any_of(poll.members, &Member::is_for_others);
  for (const auto& member : poll.members) {
    if (!member.fenced_now) continue;
    report_.gone.push_back(describe(member));
    did_something_ = true;  // its queue is read, or its record goes, in the next round
  }
}

/// What is left of it is met, and counted, once more. What could not be read may be on its way into a directory.
Result<> Round::see_to_what_the_dead_made(const PollResult& poll) {
  for (const auto& member : poll.members) {
    if (expired_.contains(member.id)) LCCFS_CHECK(read_queue(member, Items::inodes_and_ranges));
  }
  LCCFS_CHECK(handle_due());
  report_.items_left = 0;
  report_.open_elsewhere = 0;
  const Lock lock(mutex_);
  directories_wait_ = left_unread_;
  return {};
}

/// What is due waits for more of others', so that they are asked together.
Result<> Round::read_queue(const Member& member, Items which) {
  QueuePage page;
  do {
    auto read = read_queue_page(reader_, member.id, page.last_key);
    if (!read && leaves(read.error())) return {};
    if (!read) return std::unexpected(std::move(read).error());
    page = std::move(*read);
    for (const auto& line : page.damaged) note_damage({ErrorCode::corrupt, line});
    for (const auto& one : page.items) {
      if (which == Items::inodes_and_ranges && one.item.kind == QueueItem::Kind::directory) continue;
      if (is_due(member, one, instance_.clock().wall_time(), options_.grace)) {
        due_.push_back({member.id, one});
      } else if (!is_intent(member, one)) {
        ++report_.items_left;
      }
    }
    if (due_.size() >= items_at_once) LCCFS_CHECK(handle_due());
  } while (page.more && !stop_.stop_requested());
  return {};
}

/// What is logged and settled on the way is this instance's own, and not retired meanwhile.
Result<> Round::handle_due() {
  const Instance::Operation running(instance_);
  const auto due = std::exchange(due_, {});
  if (due.empty() || stop_.stop_requested()) return {};
  std::vector<Ino> directories, inodes;
  for (const auto& [session, one] : due) {
    if (one.item.kind == QueueItem::Kind::directory) directories.push_back(one.item.ino);
    if (one.item.kind == QueueItem::Kind::inode) inodes.push_back(one.item.ino);
  }
  const auto logged = due.front().one.item.time;
  LCCFS_TRY(const auto quiet_directories, handle_directories(directories, logged));
  LCCFS_TRY(const auto quiet_inodes, handle_inodes(inodes, logged, Numbers::of_inodes));
  std::map<InstanceId, std::vector<std::uint64_t>> done;
  std::set<std::tuple<InstanceId, QueueItem::Kind, Ino>> kept;
  for (const auto& [session, one] : due | std::views::reverse) {
    bool finished = false;
    if (one.item.kind == QueueItem::Kind::range) {
      LCCFS_TRY(finished, handle_range(one.item));
    } else {
      // One due item leads to the inode, or to all keys of the directory. The last of a queue stays: what another
      // collector is about to remove, having looked before, may be an earlier one.
      const auto& quiet = one.item.kind == QueueItem::Kind::inode ? quiet_inodes : quiet_directories;
      finished = quiet.contains(one.item.ino) || !kept.emplace(session, one.item.kind, one.item.ino).second;
    }
    if (finished) done[session].push_back(one.number);
    if (!finished) ++report_.items_left;
  }
  for (const auto& [session, numbers] : done) {
    LCCFS_CHECK(done_or(ErrorCode::not_found, recount_.paced(txn::remove_queue_items(session, numbers))));
    report_.items_done += numbers.size();
    did_something_ = true;
  }
  return {};
}

/// An instance that is expired writes nothing more: an empty queue stays empty.
Result<> Round::remove_instance(const Member& member) {
  const auto session =
      objects::read_object(reader_, {.object = format::session_object(member.id), .ranges = {{"q/", "", 1}}});
  if (!session && leaves(session.error())) return {};
  if (!session && session.error().code != ErrorCode::not_found) return std::unexpected(session.error());
  if (session && !session->ranges.front().entries.empty()) return {};
  LCCFS_CHECK(done_or(ErrorCode::not_found, recount_.paced(txn::remove_session(member.id))));
  const auto gone = recount_.paced(txn::remove_instance_record(member.id, member.raw));
  LCCFS_CHECK(done_or(ErrorCode::guard_failed, gone));
  if (gone) ++report_.instances_removed;
  return {};
}

/// Whether nothing ends but what needed that object: it is damaged, or does not answer.
bool Round::leaves(const Error& error) {
  if (is_damage(error)) return note_damage(error), true;
  if (error.code != ErrorCode::interrupted || stop_.stop_requested()) return false;
  const Lock lock(mutex_);
  left_unread_ = true;
  return true;
}

/// Told once a pass, however many items lead there.
void Round::note_damage(const Error& error) {
  const Lock lock(mutex_);
  left_unread_ = true;
  if (!damage_told_.insert(error.context).second) return;
  log::warning(error.context + ": left alone; run lccfs-fsck");
  report_.damaged.push_back(error.context);
}

}  // namespace lccfs::reclaim
