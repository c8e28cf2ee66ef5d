// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <map>
#include <mutex>
#include <string>

namespace lccfs {

/// One lock for each object that somebody has locked or waits for. Any thread.
class ObjectLocks {
  struct Lock {
    std::mutex mutex;
    unsigned wanted = 0;
  };
  using Place = std::map<std::string, Lock>::iterator;

 public:
  class Holding {
   public:
    Holding(ObjectLocks& locks, const std::string& object) : locks_(locks), place_(locks.want(object)) {
      place_->second.mutex.lock();
    }
    ~Holding() {
      place_->second.mutex.unlock();
      locks_.let_go(place_);
    }
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;

   private:
    ObjectLocks& locks_;
    const Place place_;
  };

 private:
  Place want(const std::string& object) {
    const std::lock_guard lock(mutex_);
    const auto place = locks_.try_emplace(object).first;
    ++place->second.wanted;
    return place;
  }
  void let_go(Place place) {
    const std::lock_guard lock(mutex_);
    if (--place->second.wanted == 0) locks_.erase(place);
  }

  std::mutex mutex_;  // guards the table; never held while a lock is waited for
  std::map<std::string, Lock> locks_;
};

}  // namespace lccfs
