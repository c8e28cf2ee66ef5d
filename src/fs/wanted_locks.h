// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Other clients that wait for locks of a file: they are told when this client drops some, and have a head start
// (docs/LOCKS.md section 3). Any thread; nothing blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "base/tasks.h"
#include "instance/instance.h"

namespace lccfs {

class WantedLocks {
 public:
  /// Where another client waits, locks that are dropped here are not taken again here for so long: it has farther to go.
  static constexpr std::chrono::milliseconds head_start{10};

  WantedLocks(Instance& instance, Tasks& tasks) : instance_(instance), tasks_(tasks) {}

  /// That one waits for locks of this file.
  void add(Ino ino, InstanceId asker) EXCLUDES(mutex_);
  bool has(Ino ino) EXCLUDES(mutex_);
  /// Whether another client has its head start now.
  bool gives_way(Ino ino) EXCLUDES(mutex_);
  /// Locks of this file were dropped: tells the clients that wait. false: none does.
  bool dropped(Ino ino) EXCLUDES(mutex_);
  /// No client is told anything more.
  void end() EXCLUDES(mutex_);

 private:
  struct Interest {
    std::uint64_t asked = 0;  // how often
    bool is_told = false;     // under way
    bool tell_again = false;
  };

  void tell(Ino ino, InstanceId client) EXCLUDES(mutex_);

  Instance& instance_;
  Tasks& tasks_;
  Mutex mutex_;
  std::map<std::pair<Ino, InstanceId>, Interest> interests_ GUARDED_BY(mutex_);
  std::map<Ino, std::chrono::nanoseconds> gives_way_until_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
};

}  // namespace lccfs
