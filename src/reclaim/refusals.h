// SPDX-License-Identifier: LGPL-2.1-or-later
// Whose data the store does not let this client remove: an object that something else protects, or a key that lacks the
// right. A pass asks for it once, and goes on with the rest. Any thread.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "base/log.h"
#include "base/mutex.h"
#include "lccfs/result.h"
#include "lccfs/types.h"
#include "reclaim/traces.h"

namespace lccfs::reclaim {

/// Whether a remove of data was answered, and nothing but that object is the worse for it. What is damaged is told as
/// such.
inline bool is_refused_remove(const Error& error) {
  return error.outcome == Outcome::definite && error.code != ErrorCode::fenced && !is_damage(error);
}

class Refusals {
 public:
  /// The first is logged: there may be as many as there are files.
  void add(Ino ino, const Error& refusal) EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    inodes_.insert(ino);
    if (!first_.empty()) return;
    first_ = refusal.context;
    log::warning(first_ + ": its inode is left, and so are others whose data the store does not remove");
  }
  /// Whether its data may be asked for: it was not yet, and not too much was refused in all.
  bool takes(Ino ino) const EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    return inodes_.size() < most && !inodes_.contains(ino);
  }
  std::size_t count() const EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    return inodes_.size();
  }
  std::string first() const EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    return first_;
  }

 private:
  /// A client that may remove nothing does not try everything.
  static constexpr std::size_t most = 10'000;

  mutable Mutex mutex_;
  std::set<Ino> inodes_ GUARDED_BY(mutex_);
  std::string first_ GUARDED_BY(mutex_);
};

}  // namespace lccfs::reclaim
