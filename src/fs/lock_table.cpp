// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/lock_table.h"

#include <algorithm>
#include <utility>

namespace lccfs {

using Stored = format::LocksRecord::Lock;

namespace {

bool overlap(std::uint64_t first, std::uint64_t last, const LockRequest& other) {
  return first <= other.last && other.first <= last;
}

bool is_same_owners(const LockRequest& one, const LockRequest& other) {
  return one.kind == other.kind && one.owner == other.owner;
}

LockRequest part(const LockRequest& whole, std::uint64_t first, std::uint64_t last) {
  auto part = whole;
  part.first = first;
  part.last = last;
  return part;
}

/// They can be said as one. What came by another handle goes with that: the kernel uses an owner's number again before
/// it has told that the open file of that number was closed.
bool continues(const LockRequest& one, const LockRequest& other) {
  return is_same_owners(one, other) && one.handle == other.handle && one.type == other.type && one.last != UINT64_MAX &&
         one.last + 1 == other.first;
}

}  // namespace

const LockRequest* LockTable::conflict(const LockRequest& wanted) const {
  const auto is_in_the_way = [&wanted](const LockRequest& held) {
    return held.kind == wanted.kind && held.owner != wanted.owner && overlap(held.first, held.last, wanted) &&
           (held.type == LockType::exclusive || wanted.type == LockType::exclusive);
  };
  const auto found = std::ranges::find_if(held_, is_in_the_way);
  return found == held_.end() ? nullptr : &*found;
}

const LockRequest* LockTable::own(const LockRequest& wanted) const {
  const auto found = std::ranges::find_if(held_, [&wanted](const LockRequest& held) {
    return is_same_owners(held, wanted) && overlap(held.first, held.last, wanted);
  });
  return found == held_.end() ? nullptr : &*found;
}

bool LockTable::covers(const LockRequest& wanted) const {
  auto rest = LockTable();
  rest.held_ = {wanted};
  for (auto held : held_) {
    if (!is_same_owners(held, wanted)) continue;
    held.type = LockType::none;
    rest.set(held);
  }
  return rest.empty();
}

void LockTable::lessen(const LockRequest& wanted) {
  const auto before = held_;
  for (const auto& held : before) {
    if (!is_same_owners(held, wanted) || held.type != LockType::exclusive || !overlap(held.first, held.last, wanted)) {
      continue;
    }
    auto less = part(held, std::max(held.first, wanted.first), std::min(held.last, wanted.last));
    less.type = LockType::shared;
    set(less);
  }
}

void LockTable::set(const LockRequest& wanted) {
  std::vector<LockRequest> kept;
  for (auto& held : held_) {
    if (!is_same_owners(held, wanted) || !overlap(held.first, held.last, wanted)) {
      kept.push_back(held);
      continue;
    }
    if (held.first < wanted.first) kept.push_back(part(held, held.first, wanted.first - 1));
    if (held.last > wanted.last) kept.push_back(part(held, wanted.last + 1, held.last));
  }
  held_ = std::move(kept);
  if (wanted.type == LockType::none) return;
  auto added = wanted;
  std::erase_if(held_, [&added](const LockRequest& held) {
    const bool is_before = continues(held, added), is_behind = continues(added, held);
    if (is_before) added.first = held.first;
    if (is_behind) added.last = held.last;
    return is_before || is_behind;
  });
  held_.push_back(added);
}

void LockTable::drop_range_locks(std::uint64_t owner) {
  std::erase_if(held_,
                [owner](const LockRequest& held) { return held.kind == LockKind::range && held.owner == owner; });
}

void LockTable::drop(HandleId handle) {
  std::erase_if(held_, [handle](const LockRequest& held) { return held.handle == handle; });
}

void LockTable::disown(HandleId handle, std::optional<std::uint64_t> owner, std::uint64_t nobody) {
  for (auto& held : held_) {
    const bool is_its = owner ? held.kind == LockKind::range && held.owner == *owner : held.handle == handle;
    if (is_its) held.owner = nobody;
  }
}

std::vector<Stored> LockTable::stored() const {
  std::vector<Stored> all;
  all.reserve(held_.size());
  for (const auto& held : held_) {
    all.push_back({held.kind == LockKind::flock, held.type == LockType::exclusive, held.first, held.last});
  }
  std::ranges::sort(all);
  const auto again = std::ranges::unique(all);
  all.erase(again.begin(), again.end());
  return all;
}

const Stored* conflict(const format::LocksRecord& others, const LockRequest& wanted) {
  const auto is_in_the_way = [&wanted](const Stored& held) {
    return held.is_flock == (wanted.kind == LockKind::flock) && overlap(held.first, held.last, wanted) &&
           (held.is_exclusive || wanted.type == LockType::exclusive);
  };
  const auto found = std::ranges::find_if(others.locks, is_in_the_way);
  return found == others.locks.end() ? nullptr : &*found;
}

}  // namespace lccfs
