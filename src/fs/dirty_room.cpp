// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/dirty_room.h"

#include <string>

#include "base/log.h"
#include "fs/write_buffer.h"

namespace lccfs {

namespace {
constexpr std::chrono::seconds longest_wait{1};
}  // namespace

void DirtyRoom::Refusals::refused(const Error& why) {
  if (was_refused.exchange(true)) return;
  log::warning("the store has no room for " + std::string(of_what) + ": " + describe(why.code) + ": " + why.context);
}

/// Each create says so: it is looked at before it is changed.
void DirtyRoom::Refusals::found_room() {
  if (!was_refused || !was_refused.exchange(false)) return;
  log::warning("the store has room for " + std::string(of_what) + " again");
}

/// Not past those that wait already.
bool DirtyRoom::take_now(std::uint64_t bytes) {
  const Lock lock(mutex_);
  if (waiting_ != 0 || !has_room(bytes)) return false;
  used_bytes_ += bytes;
  return true;
}

/// What is buffered while somebody waits goes out at once (is_short), so that one sweep over the rest is enough.
bool DirtyRoom::take(std::uint64_t bytes) {
  Lock lock(mutex_);
  if (!has_room(bytes)) {
    if (was_in_vain_) return false;
    const bool is_first = waiting_++ == 0;
    lock.unlock();
    if (is_first) write_all_out();
    lock.lock();
    const auto there_is_room = [&]() REQUIRES(mutex_) { return has_room(bytes); };
    const bool in_time = clock_.wait_for(changed_, lock, longest_wait, there_is_room);
    --waiting_;
    was_in_vain_ = !in_time;
    if (was_in_vain_) return false;
  }
  used_bytes_ += bytes;
  return true;
}

void DirtyRoom::give_back(std::uint64_t bytes) {
  const Lock lock(mutex_);
  used_bytes_ -= bytes;
  if (used_bytes_ <= short_from_bytes()) was_in_vain_ = false;
  changed_.notify_all();
}

void DirtyRoom::recount(std::uint64_t bytes_before, std::uint64_t bytes_now) {
  if (bytes_now <= bytes_before) return give_back(bytes_before - bytes_now);
  const Lock lock(mutex_);
  used_bytes_ += bytes_now - bytes_before;
}

bool DirtyRoom::is_short() const {
  const Lock lock(mutex_);
  return waiting_ != 0 || used_bytes_ > short_from_bytes();
}

void DirtyRoom::add(const std::shared_ptr<WriteBuffer>& buffer) {
  const Lock lock(mutex_);
  buffers_[buffer.get()] = buffer;
}

void DirtyRoom::remove(const WriteBuffer* buffer) {
  const Lock lock(mutex_);
  buffers_.erase(buffer);
}

std::vector<std::shared_ptr<WriteBuffer>> DirtyRoom::buffers() const {
  std::vector<std::shared_ptr<WriteBuffer>> all;
  const Lock lock(mutex_);
  for (const auto& [buffer, reference] : buffers_) {
    if (auto found = reference.lock()) all.push_back(std::move(found));
  }
  return all;
}

void DirtyRoom::write_all_out() {
  for (const auto& buffer : buffers()) buffer->begin_write_out();
}

bool DirtyRoom::is_exceeded() const {
  std::uint64_t failed_bytes = 0;
  for (const auto& buffer : buffers()) failed_bytes += buffer->bytes_without_room();
  return failed_bytes > limit_bytes_;
}

}  // namespace lccfs
