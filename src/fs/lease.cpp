// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Every step guards "lease is mine", "lease is the old one" or the version. If a guard fails, the inode is read again.
//
//  take       | object   | step                                                   | stop here leaves
//  1          | Inode.X  | [take lease] guard lease absent, version as read;      | my lease, until I am expired
//             |          | lease = me, taken = a new token. (The read has found   |
//             |          | the openers; a later one changes the version.)         |
//
//  take over  | object   | step                                                   | stop here leaves
//  0          | Super    | the old holder is expired (fenced first if it is       |
//             |          | gone); sync fences                                     |
//  1          | Inode.X  | [take over lease] guard lease = old; lease = me,       | bytes past the size: the next take-over
//             |          | fence = the counter (taken stays: while the lease was  | cuts them
//             |          | held, no client took pages under it for right)         |
//  2          | Inode.X  | read size and map anew                                 | the same
//  3          | Data.X.* | cut the boundary object, remove mapped ones past it    | the same
//
//  release    | object   | step                                                   | stop here leaves
//  1          | Inode.X  | [release lease] guard lease = me; size, times, map;    | done
//             |          | lease removed. (Where X was not sent yet, [create      |
//             |          | inode] does so: instance/unstored_inodes.h. Where the  |
//             |          | store refuses that, nothing is released.)              |
//  -          | Inode.X  | 1 has failed: read, before anything else is done under | my lease, or nobody's, or another's
//             |          | the lease. It may have been done all the same          |
#include "fs/lease.h"

#include <utility>

#include "base/expected_errors.h"
#include "txn/file_txn.h"
#include "txn/namespace_txn.h"

namespace lccfs {

using Holder = LeaseHolders::Holder;

namespace {
/// The pauses that are made for who was given way double; after this one it is waited for no longer.
constexpr std::chrono::milliseconds longest_pause{64};
}  // namespace

Result<Inode> Lease::read() const {
  return read_inode(instance_, ino,
                    {.map = InodeParts::Map::whole, .openers = instance_.super().has(format::feature::openers)});
}

/// A mount that began before the upgrade renews a `taken` that it finds: else others would take old pages for right.
std::optional<Token> Lease::next_taken(const Inode& read) const {
  const bool has_it = read.taken || (read.is_regular() && instance_.super().has(format::feature::openers));
  return has_it ? std::optional(instance_.next_token()) : std::nullopt;
}

Result<> Lease::settle_release() {
  if (!is_in_doubt()) return {};
  const Lock one_step(step_mutex);
  return settle_release_now();
}

/// A read, not a step: it is answered on a full store, too. All runs of the release have ended before it is sent, so what
/// it shows stays. What was dirty is dirty still, or was stored by the release: nothing was changed since.
Result<> Lease::settle_release_now() {
  if (!is_in_doubt()) return {};
  LCCFS_TRY(const auto inode, or_none(read()));
  if (!inode || inode->lease != instance_.id()) {
    is_released(std::nullopt);
    return {};
  }
  const Lock lock(mutex);
  may_be_released = false;
  return {};
}

Result<> Lease::ensure() {
  LCCFS_CHECK(settle_release_now());
  if (held()) return {};
  bool was_recalled = false;
  for (bool again = false;; again = true) {
    if (again) instance_.clock().sleep_for(std::chrono::milliseconds(1));
    LCCFS_TRY(auto inode, read());
    LCCFS_CHECK(instance_.see_fence(inode.fence));
    // Ours, though memory does not say so: taken over just now, perhaps by a run of the step that seemed to fail.
    if (inode.lease == instance_.id()) return adopt(std::move(inode), {}, was_recalled);
    if (!inode.lease) {
      if (leaves_it_to_asker(inode)) continue;
      const auto token = next_taken(inode);
      auto taken = instance_.run_repeatable(txn::take_lease(ino, instance_.id(), inode.version, token));
      if (taken) {
        const auto unchanged_since = inode.bytes_stamp();
        inode.version = taken->version;
        inode.taken = token;
        return adopt(std::move(inode), unchanged_since, was_recalled);
      }
      if (taken.error().code != ErrorCode::guard_failed) return std::unexpected(std::move(taken).error());
      continue;
    }
    LCCFS_TRY(const auto holder, holders_.settle(*inode.lease, {format::Question::Kind::release_lease, ino, false}));
    was_recalled = holder == Holder::answered;
    if (holder == Holder::expired) LCCFS_CHECK(take_over(*inode.lease));
  }
}

void Lease::give_way() {
  const Lock lock(mutex);
  if (!lease_held && released_at_ != 0) next_pause_ = std::chrono::milliseconds(1);
}

/// Another version: it has come, and gone again perhaps. Nothing rests on the time.
bool Lease::leaves_it_to_asker(const Inode& read) {
  std::chrono::milliseconds pause{0};
  {
    const Lock lock(mutex);
    if (read.version == released_at_ && next_pause_ <= longest_pause) pause = next_pause_;
    next_pause_ = pause * 2;
  }
  if (pause.count() == 0) return false;
  instance_.clock().sleep_for(pause);
  return true;
}

/// A guard that failed: another client was quicker, or an earlier run of ours. The inode tells.
Result<> Lease::take_over(InstanceId expired) {
  auto take = txn::take_over_lease(ino, expired, instance_.id(), instance_.newest_fence());
  return done_or(ErrorCode::guard_failed, instance_.run_repeatable(std::move(take)));
}

Result<> Lease::find_own() {
  const Lock one_step(step_mutex);
  return held() ? Result<>{} : adopt_own();
}

Result<> Lease::take_over_from(InstanceId expired) {
  const Lock one_step(step_mutex);
  if (held()) return {};
  auto taken = take_over(expired);
  if (taken) return adopt_own();
  return taken.error().code == ErrorCode::not_found ? Result<>{} : taken;
}

Result<> Lease::adopt_own() {
  LCCFS_TRY(auto inode, or_none(read()));
  if (!inode || inode->lease != instance_.id()) return {};
  return adopt(std::move(*inode), {}, false);
}

Result<> Lease::adopt(Inode inode, const objects::BytesStamp& unchanged_since, bool was_recalled) {
  inode.lease = instance_.id();
  LCCFS_CHECK(taken(std::move(inode), unchanged_since));
  const Lock lock(mutex);
  lease_held = true;
  may_be_released = false;
  is_shared = was_recalled;
  return {};
}

bool Lease::is_part_of_creation(const MetaTxn& step) const {
  return instance_.unstored().edit(ino, [&step](MetaTxn& create) {
    txn::include(create, step);
    return true;
  });
}

/// As `released` is told.
Result<std::optional<std::uint64_t>> Lease::end_in_store() {
  LCCFS_TRY(auto step, release_step());
  if (is_part_of_creation(step)) return 0;
  // Where the store refuses the inode, there is nothing to be released: memory is right, and its bytes can be read.
  if (auto stored = instance_.store_inode(ino); !stored && !instance_.unstored().is_lost(ino)) {
    return std::unexpected(std::move(stored).error());
  }
  {
    const Lock lock(mutex);
    may_be_released = true;
  }
  auto done = instance_.run_repeatable(std::move(step));
  if (done) return done->version;
  // A guard that failed, or an object that is gone: an earlier run did it, or the instance that took over fenced us
  // first.
  const auto code = done.error().code;
  if (code == ErrorCode::guard_failed || code == ErrorCode::not_found) return std::nullopt;
  return std::unexpected(std::move(done).error());
}

Result<> Lease::release() {
  const Lock one_step(step_mutex);
  if (!held()) return {};
  LCCFS_TRY(const auto version, end_in_store());
  is_released(version);
  return {};
}

bool Lease::release_unsent() {
  if (!step_mutex.try_lock()) return false;
  const Lock one_step(step_mutex, std::adopt_lock);
  if (!held()) return false;
  const auto step = release_step();
  if (!step || !is_part_of_creation(*step)) return false;
  is_released(0);
  return true;
}

void Lease::is_released(std::optional<std::uint64_t> version) {
  const Lock lock(mutex);
  lease_held = false;
  may_be_released = false;
  is_shared = false;
  released_at_ = version.value_or(0);
  next_pause_ = std::chrono::milliseconds(0);
  released(version);
}

}  // namespace lccfs
