// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/space_looks.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

namespace lccfs {

namespace {
constexpr std::chrono::seconds look_every{5};
constexpr std::chrono::seconds longest_wait{2};
constexpr std::uint64_t reserve_bytes = 1 << 30;
/// 4,096 names at most are answered and not stored yet (docs/NAMES.md section 5), with an inode and a first data object
/// each: of two clients.
constexpr std::uint64_t reserve_objects = 16'384;

bool is_low(std::uint64_t available, std::uint64_t total, std::uint64_t reserve) {
  return available < std::max(reserve, total / 100);
}

/// Names and sizes need room where the metadata is, and everything needs objects.
bool is_nearly_full(const Capacity& space) {
  return is_low(space.available_bytes, space.total_bytes, reserve_bytes) ||
         is_low(space.metadata_available_bytes, space.metadata_total_bytes, reserve_bytes) ||
         (space.quota && is_low(space.quota->available, space.quota->most, reserve_objects));
}
}  // namespace

void SpaceLooks::Look::end(const Result<Capacity>& space, std::chrono::nanoseconds asked_at) {
  const Lock lock(mutex);
  is_under_way = false;
  ++number;
  error = space ? std::nullopt : std::optional(space.error());
  if (space) heard = *space;
  if (space) heard_at = asked_at;
  ended.notify_all();
}

void SpaceLooks::tick() {
  {
    const Lock lock(look_->mutex);
    if (instance_.clock().elapsed() < look_->next_at) return;
  }
  begin_look();
}

/// Unless one is under way.
void SpaceLooks::begin_look() {
  const auto now = instance_.clock().elapsed();
  {
    const Lock lock(look_->mutex);
    if (std::exchange(look_->is_under_way, true)) return;
    look_->next_at = now + look_every;
  }
  auto ask = [look = look_, room = room_, store = instance_.shared_store(), now]() mutable {
    const auto space = store->capacity();
    if (space) room->set_nearly_full(is_nearly_full(*space));
    store.reset();  // first: who waits closes it
    look->end(space, now);
  };
  try {
    std::thread(std::move(ask)).detach();  // the pools wait for theirs
  } catch (const std::system_error& none) {
    look_->end(failure(ErrorCode::busy, none.what()), now);
  }
}

Result<Capacity> SpaceLooks::space() {
  Lock lock(look_->mutex);
  const auto next = look_->number;
  lock.unlock();
  begin_look();
  lock.lock();
  const auto has_ended = [this, next]() REQUIRES(look_->mutex) { return look_->number != next; };
  const bool is_new = look_->heard ? instance_.clock().wait_for(look_->ended, lock, longest_wait, has_ended)
                                   : (lock.wait(look_->ended, has_ended), true);
  if (is_new && look_->error) return std::unexpected(*look_->error);
  return *look_->heard;
}

Result<bool> SpaceLooks::has_free(std::uint64_t bytes) {
  {
    const Lock lock(look_->mutex);
    const bool is_known = look_->heard && instance_.clock().elapsed() < look_->heard_at + look_every;
    if (is_known && bytes <= look_->heard->available_bytes) return true;
  }
  LCCFS_TRY(const auto now, space());
  return bytes <= now.available_bytes;
}

SpaceLooks::~SpaceLooks() {
  Lock lock(look_->mutex);
  const auto has_ended = [this]() REQUIRES(look_->mutex) { return !look_->is_under_way; };
  instance_.clock().wait_for(look_->ended, lock, longest_wait, has_ended);
}

}  // namespace lccfs
