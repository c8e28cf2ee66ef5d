// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The steps on data objects: on one object in the order sent (reads beside each other), on different objects at once.
// A change is two halves: made in the page cache, in its turn, where reads see it; then synced, without holding up the
// next step; whatever was changed while one sync of an object runs shares the next one.
//
// Any thread; completions are called by the queue's threads, or inside `read`, without a lock.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "store/local/data_files.h"

namespace lccfs::local {

class DataQueue {
 public:
  explicit DataQueue(int data) : files_(data) {}
  DataQueue(const DataQueue&) = delete;
  DataQueue& operator=(const DataQueue&) = delete;

  using Change = std::move_only_function<Result<Unsynced>(const DataFiles&)>;

  void read(const std::string& object, std::uint64_t offset, std::span<char> target, ObjectStore::ReadDone done);
  void extents(const std::string& object, std::uint64_t offset, std::uint64_t size_bytes,
               ObjectStore::ExtentsDone done);
  void change(const std::string& object, Change change, ObjectStore::DataDone done);
  const DataFiles& files() const { return files_; }

 private:
  struct Turn {
    bool is_change = false;
    std::move_only_function<void()> run;
  };
  struct Object {
    std::deque<Turn> line;
    unsigned reading = 0;
    bool changing = false;
    Unsynced unsynced;                           // what the changes have left that wait for the next sync,
    std::vector<ObjectStore::DataDone> to_sync;  // and their completions
    bool syncing = false;
  };

  void line_up(const std::string& name, Turn turn);
  void start_turns(const std::string& name, Object& object) REQUIRES(mutex_);
  void take(const std::string& name, Turn turn);
  void sync(const std::string& name);
  void forget_if_idle(const std::string& name) REQUIRES(mutex_);
  bool would_wait(const std::string& name);

  const DataFiles files_;
  Mutex mutex_;
  std::unordered_map<std::string, Object> objects_ GUARDED_BY(mutex_);  // those with steps in flight
  ThreadPool threads_{64};                                              // last, so that it ends first
};

}  // namespace lccfs::local
