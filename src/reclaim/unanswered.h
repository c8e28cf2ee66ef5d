// SPDX-License-Identifier: LGPL-2.1-or-later
// What a collector has asked the store for, and has stopped waiting for: no pass asks for it again before the store has
// answered. It may outlive its collector: what may still be answered holds it. Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <set>
#include <string>

#include "base/mutex.h"
#include "lccfs/types.h"

namespace lccfs::reclaim {

class Unanswered {
 public:
  // -- removes of the data of a number
  void add(Ino ino) EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    inodes_.insert(ino);
  }
  void answered(Ino ino) EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    inodes_.erase(ino);
  }
  /// Whether its data may be removed: nothing of it is unanswered, and not too much is in all.
  bool takes(Ino ino) const EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    return inodes_.size() < most && !inodes_.contains(ino);
  }

  // -- reads of a metadata object
  void add(const std::string& object) EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    objects_.insert(object);
  }
  void answered(const std::string& object) EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    objects_.erase(objects_.find(object));
  }
  bool holds(const std::string& object) const EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    return objects_.contains(object);
  }

  /// For how long an answer is waited for: longer than an OSD takes to come back, as a rule; not as long by far while
  /// something is known not to answer, as there may be much of it.
  std::chrono::seconds patience() const EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    return std::chrono::seconds(inodes_.empty() && objects_.empty() ? 30 : 5);
  }

 private:
  /// Each may have as many removes in flight as a pass has jobs.
  static constexpr std::size_t most = 1000;

  mutable Mutex mutex_;
  std::set<Ino> inodes_ GUARDED_BY(mutex_);
  std::multiset<std::string> objects_ GUARDED_BY(mutex_);
};

}  // namespace lccfs::reclaim
