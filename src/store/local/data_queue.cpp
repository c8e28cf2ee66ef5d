// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/data_queue.h"

#include <utility>

namespace lccfs::local {
namespace {

// A copy of this much is quicker than handing it to another thread.
constexpr std::size_t cached_read_limit_bytes = 128U << 10;

}  // namespace

void DataQueue::read(const std::string& object, std::uint64_t offset, std::span<char> target,
                     ObjectStore::ReadDone done) {
  if (target.size() <= cached_read_limit_bytes && !would_wait(object)) {
    if (const auto size = files_.read_cached(object, offset, target)) return done(*size);
  }
  line_up(
      object,
      {false, [this, object, offset, target, done = std::move(done)]() mutable {
         auto size = files_.read(object, offset, target);
         return Made{{}, [done = std::move(done), size = std::move(size)](Result<>) mutable { done(std::move(size)); }};
       }});
}

void DataQueue::extents(const std::string& object, std::uint64_t offset, std::uint64_t size_bytes,
                        ObjectStore::ExtentsDone done) {
  line_up(object, {false, [this, object, offset, size_bytes, done = std::move(done)]() mutable {
                     auto found = files_.extents(object, offset, size_bytes);
                     return Made{{}, [done = std::move(done), found = std::move(found)](Result<>) mutable {
                                   done(std::move(found));
                                 }};
                   }});
}

void DataQueue::change(const std::string& object, Change change, ObjectStore::DataDone done) {
  line_up(object, {true, [this, change = std::move(change), done = std::move(done)]() mutable {
                     auto changed = change(files_);
                     if (changed) return Made{std::move(*changed), std::move(done)};
                     return Made{{}, [done = std::move(done), error = std::move(changed).error()](Result<>) mutable {
                                   done(std::unexpected(std::move(error)));
                                 }};
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
  Made made = turn.make();
  turn.make = nullptr;  // lets go of the bytes
  std::optional<Made> answered;
  bool sync_here = false;
  {
    const Lock lock(mutex_);
    Object& object = objects_.at(name);
    if (turn.is_change) {
      object.changing = false;
    } else {
      --object.reading;
    }
    if (!made.unsynced) {
      answered = std::move(made);
    } else {
      // Of thousands of changes that wait for a sync each would else keep a descriptor, and a process has few.
      if (!object.to_sync.empty()) share_descriptor(*object.to_sync.back().unsynced, *made.unsynced);
      // Before the next turn starts, which may rest on this one (a file that was made).
      object.to_sync.push_back(std::move(made));
      sync_here = !std::exchange(object.syncing, true);  // else the syncing thread takes this one with the next round
    }
    start_turns(name, object);
  }
  if (sync_here) sync(name);
  if (answered) answered->done({});
}

void DataQueue::sync(const std::string& name) {
  Lock lock(mutex_);
  Object& object = objects_.at(name);  // stays while `syncing` is set
  while (!object.to_sync.empty()) {
    auto round = std::exchange(object.to_sync, {});
    lock.unlock();
    std::vector<Unsynced> changes;
    changes.reserve(round.size());
    for (Made& each : round) changes.push_back(std::move(*each.unsynced));
    const auto synced = files_.sync(name, changes);
    for (Made& each : round) each.done(synced);
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
