// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/space_looks.h"

#include <algorithm>
#include <system_error>
#include <thread>

namespace lccfs {

namespace {
constexpr std::chrono::seconds look_every{5};
constexpr std::chrono::seconds longest_wait_at_end{2};
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

void SpaceLooks::Look::hear(const Capacity& space, std::chrono::nanoseconds asked_at) {
  const Lock lock(mutex);
  free_bytes = space.available_bytes;
  heard_at = asked_at;
}

void SpaceLooks::Look::end() {
  const Lock lock(mutex);
  is_under_way = false;
  ended.notify_all();
}

void SpaceLooks::tick() {
  const auto now = instance_.clock().elapsed();
  {
    const Lock lock(look_->mutex);
    if (look_->is_under_way || now < look_->next_at) return;
    look_->is_under_way = true;
    look_->next_at = now + look_every;
  }
  auto ask = [look = look_, room = room_, store = instance_.shared_store(), now]() mutable {
    const auto space = store->capacity();
    if (space) look->hear(*space, now);
    if (space) room->set_nearly_full(is_nearly_full(*space));
    store.reset();  // first: who waits closes it
    look->end();
  };
  try {
    std::thread(std::move(ask)).detach();  // the pools wait for theirs
  } catch (const std::system_error&) {     // no more threads to be had: the next time, perhaps
    look_->end();
  }
}

Result<bool> SpaceLooks::has_free(std::uint64_t bytes) {
  const auto now = instance_.clock().elapsed();
  {
    const Lock lock(look_->mutex);
    if (now < look_->heard_at + look_every && bytes <= look_->free_bytes) return true;
  }
  LCCFS_TRY(const auto space, instance_.store().capacity());
  look_->hear(space, now);
  return bytes <= space.available_bytes;
}

SpaceLooks::~SpaceLooks() {
  Lock lock(look_->mutex);
  const auto has_ended = [this]() REQUIRES(look_->mutex) { return !look_->is_under_way; };
  instance_.clock().wait_for(look_->ended, lock, longest_wait_at_end, has_ended);
}

}  // namespace lccfs
