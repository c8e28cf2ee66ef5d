// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <map>
#include <optional>

#include "base/mutex.h"
#include "lccfs/types.h"

namespace lccfs {

/// Who is being asked for what it holds, for as long as it takes: for the log, where a request waits for that. Any thread.
class AskedHolders {
 public:
  /// While it lives.
  class Asking {
   public:
    Asking(AskedHolders& all, Ino ino, InstanceId holder) EXCLUDES(all.mutex_) : all_(all) {
      const Lock lock(all_.mutex_);
      place_ = all_.asked_.emplace(ino, holder);
    }
    ~Asking() EXCLUDES(all_.mutex_) {
      const Lock lock(all_.mutex_);
      all_.asked_.erase(place_);
    }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

   private:
    AskedHolders& all_;
    std::multimap<Ino, InstanceId>::iterator place_;
  };

  /// One of those that are asked about this inode.
  std::optional<InstanceId> about(Ino ino) const EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    const auto found = asked_.find(ino);
    return found == asked_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable Mutex mutex_;
  std::multimap<Ino, InstanceId> asked_ GUARDED_BY(mutex_);
};

}  // namespace lccfs
