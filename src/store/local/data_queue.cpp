// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/data_queue.h"

#include <sys/uio.h>

#include <utility>

namespace lccfs::local {
namespace {

// A copy of this much is quicker than handing it to another thread.
constexpr std::size_t cached_read_limit_bytes = 128U << 10;

}  // namespace

void DataQueue::read(const std::string& object, std::uint64_t offset, std::span<char> target,
                     ObjectStore::ReadDone done) {
  if (target.size() <= cached_read_limit_bytes && !would_wait(object)) {
    if (const auto size = files_.read(object, offset, target, RWF_NOWAIT)) return done(*size);
  }
  line_up(object, {false, [this, object, offset, target, done = std::move(done)]() mutable {
                     done(files_.read(object, offset, target, 0));
                   }});
}

void DataQueue::extents(const std::string& object, std::uint64_t offset, std::uint64_t size_bytes,
                        ObjectStore::ExtentsDone done) {
  line_up(object, {false, [this, object, offset, size_bytes, done = std::move(done)]() mutable {
                     done(files_.extents(object, offset, size_bytes));
                   }});
}

void DataQueue::change(const std::string& object, Change change, ObjectStore::DataDone done) {
  line_up(object, {true, [this, object, change = std::move(change), done = std::move(done)]() mutable {
                     auto changed = change(files_);
                     if (!changed) return done(std::unexpected(std::move(changed).error()));
                     // Before the next turn starts, which may rest on this one (a file that was made).
                     const Lock lock(mutex_);
                     Object& changing = objects_.at(object);
                     changing.unsynced.add(std::move(*changed));
                     changing.to_sync.push_back(std::move(done));
                   }});
}

bool DataQueue::would_wait(const std::string& name) {
  const Lock lock(mutex_);
  const auto found = objects_.find(name);
  return found != objects_.end() && (found->second.changing || !found->second.line.empty());
}

void DataQueue::line_up(const std::string& name, Turn turn) {
  const Lock lock(mutex_);
  Object& object = objects_[name];
  object.line.push_back(std::move(turn));
  start_turns(name, object);
}

void DataQueue::start_turns(const std::string& name, Object& object) {
  while (!object.line.empty() && !object.changing && (!object.line.front().is_change || object.reading == 0)) {
    Turn turn = std::move(object.line.front());
    object.line.pop_front();
    object.changing = turn.is_change;
    object.reading += turn.is_change ? 0 : 1;
    threads_.post([this, name, turn = std::move(turn)]() mutable { take(name, std::move(turn)); });
  }
  forget_if_idle(name);
}

void DataQueue::take(const std::string& name, Turn turn) {
  turn.run();
  turn.run = nullptr;  // lets go of the bytes
  bool sync_here = false;
  {
    const Lock lock(mutex_);
    Object& object = objects_.at(name);
    if (turn.is_change) {
      object.changing = false;
    } else {
      --object.reading;
    }
    // Else there is nothing to sync, or the syncing thread takes it with the next round.
    sync_here = !object.to_sync.empty() && !std::exchange(object.syncing, true);
    start_turns(name, object);
  }
  if (sync_here) sync(name);
}

void DataQueue::sync(const std::string& name) {
  Lock lock(mutex_);
  Object& object = objects_.at(name);  // stays while `syncing` is set
  while (!object.to_sync.empty()) {
    auto round = std::exchange(object.to_sync, {});
    const auto unsynced = std::exchange(object.unsynced, {});
    lock.unlock();
    const auto synced = files_.sync(name, unsynced);
    for (auto& done : round) done(synced);
    round.clear();
    lock.lock();
  }
  object.syncing = false;
  forget_if_idle(name);
}

void DataQueue::forget_if_idle(const std::string& name) {
  const auto found = objects_.find(name);
  if (found == objects_.end()) return;
  const Object& object = found->second;
  if (object.line.empty() && object.reading == 0 && !object.changing && object.to_sync.empty() && !object.syncing)
    objects_.erase(found);
}

}  // namespace lccfs::local
