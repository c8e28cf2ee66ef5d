// SPDX-License-Identifier: LGPL-2.1-or-later
// Inode and range items: recount in bulk, so that the instances are asked once for many dead inodes.
#include <algorithm>

#include "reclaim/round.h"

namespace lccfs::reclaim {

using Kind = Assessment::Kind;
using format::QueueItem;

namespace {
/// An instance that was silent once is asked again before the rest of the round is given up. Each poll may take ten
/// seconds.
constexpr unsigned most_silent_calls = 2;
}  // namespace

Result<std::set<Ino>> Round::handle_inodes(const std::vector<Ino>& inodes, TimeSpec logged, Numbers numbers) {
  std::set<Ino> dealt_with;
  for (std::size_t begin = 0; begin < inodes.size() && !stop_.stop_requested(); begin += format::poll_limit) {
    const auto end = std::min<std::size_t>(inodes.size(), begin + format::poll_limit);
    std::set<Ino> distinct(inodes.begin() + static_cast<std::ptrdiff_t>(begin),
                           inodes.begin() + static_cast<std::ptrdiff_t>(end));
    const std::vector<Ino> chunk(distinct.begin(), distinct.end());
    std::vector<Assessment> dead;
    LCCFS_CHECK(in_parallel(chunk.size(), [&](std::size_t i) -> Result<> {
      auto assessed = recount_.advance(*horizon_, chunk[i]);
      if (!assessed) return keep_range_of(chunk[i]), std::unexpected(std::move(assessed).error());
      auto& assessment = *assessed;
      const auto kind = assessment.kind;
      if (kind == Kind::gone && numbers == Numbers::of_a_range) {
        LCCFS_TRY(const bool removed, remove_early_bytes(chunk[i]));
        if (!removed) return {};
      }
      if (kind == Kind::lost_parent) note_damage(describe_lost_parent(assessment));
      const Lock lock(mutex_);
      did_something_ = did_something_ || assessment.after_a_change;
      // What leads to one whose directory was lost goes: to lccfs-fsck it is an orphan then, and nothing is in the way.
      const bool nothing_left = kind == Kind::gone || kind == Kind::right || kind == Kind::lost_parent;
      if (nothing_left) dealt_with.insert(chunk[i]);
      if (!nothing_left && !assessment.inode.is_directory()) files_left_.insert(chunk[i]);
      if (!nothing_left) keep_directories_of(assessment.inode);
      if (assessment.kind == Kind::reclaim) dead.push_back(std::move(assessment));
      return {};
    }));
    LCCFS_CHECK(remove_dead(dead, logged, dealt_with));
  }
  return dealt_with;
}

/// The question comes after the marks: an open that begins later finds the inode dead (docs/COUNTEREXAMPLES.md C28).
Result<> Round::remove_dead(const std::vector<Assessment>& dead, TimeSpec logged, std::set<Ino>& dealt_with) {
  std::vector<const Assessment*> asked;
  std::vector<Ino> numbers;
  for (const auto& assessment : dead) {
    if (must_wait(assessment.inode)) continue;
    if (!recount_.may_be_removed(assessment.inode)) continue;
    asked.push_back(&assessment);
    numbers.push_back(assessment.inode.ino);
  }
  if (asked.empty() || silent_calls_ >= most_silent_calls) return {};
  LCCFS_TRY(const auto poll, instance_.poll_liveness(numbers, stop_, turn_));
  note_gone(poll);
  silent_calls_ = poll.all_answered() ? 0 : silent_calls_ + 1;
  if (silent_calls_ > 0) return {};
  if (somebody_has_expired_since(poll)) {
    did_something_ = true;  // directories go in the next round
    std::erase_if(asked, [](const Assessment* one) { return one->inode.is_directory(); });
  }
  return in_parallel(asked.size(),
                     [&](std::size_t i) -> Result<> { return remove_asked(*asked[i], poll, logged, dealt_with); });
}

/// Then this round has not looked at what it made.
bool Round::somebody_has_expired_since(const PollResult& later) const {
  return std::ranges::any_of(later.members, [this](const Member& member) {
    return member.standing == Member::Standing::expired && !expired_.contains(member.id);
  });
}

Result<> Round::remove_asked(const Assessment& dead, const PollResult& poll, TimeSpec logged,
                             std::set<Ino>& dealt_with) {
  const auto& inode = dead.inode;
  if (poll.is_open(inode.ino)) {
    const Lock lock(mutex_);
    ++report_.open_elsewhere;
    return {};
  }
  LCCFS_TRY(const bool removed, recount_.remove(dead, logged));
  const Lock lock(mutex_);
  did_something_ = did_something_ || removed || inode.has_entries;
  if (removed) dealt_with.insert(inode.ino);
  return {};
}

/// It may have no name there, and then nothing but the item that led here says so. What is met after the first look at the
/// expired instances' items has a live one to answer for it, or a d/ key there.
void Round::keep_directories_of(const Inode& left) {
  if (!directories_wait_ || left.dead()) return;
  for (const auto& pointer : left.pointers) pointed_to_.insert(pointer.parent);
}

bool Round::must_wait(const Inode& dead) const {
  return dead.is_directory() && (directories_wait_ || pointed_to_.contains(dead.ino));
}

/// Where they stay, so does the range: nothing else leads to them.
Result<bool> Round::remove_early_bytes(Ino ino) {
  auto removed = recount_.remove_early_bytes(ino);
  if (!removed || !*removed) keep_range_of(ino);
  return removed;
}

void Round::keep_range_of(Ino ino) {
  const Lock lock(mutex_);
  ranges_kept_for_.insert(ino);
}

/// Numbers of which something is left get items of their own, so that the others are not looked at again. Where one
/// cannot be read, or bytes without an inode are not removed, the range stays, and with it its instance: an item would be
/// dropped as that of an inode that is gone.
Result<bool> Round::handle_range(const QueueItem& range) {
  const auto inodes = numbers_in(range);
  LCCFS_TRY(const auto dealt_with, handle_inodes(inodes, range.time, Numbers::of_a_range));
  if (stop_.stop_requested()) return false;
  if (std::ranges::any_of(inodes, [this](Ino ino) { return ranges_kept_for_.contains(ino); })) return false;
  std::vector<QueueItem> left;
  for (const Ino ino : inodes) {
    if (!dealt_with.contains(ino)) left.push_back({QueueItem::Kind::inode, ino, {}, range.time});
  }
  if (!left.empty()) LCCFS_CHECK(instance_.log_items(left));
  return true;
}

}  // namespace lccfs::reclaim
