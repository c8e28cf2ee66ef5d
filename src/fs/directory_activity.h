// SPDX-License-Identifier: LGPL-2.1-or-later
// How often directories that nobody holds are used here, and when other clients have asked for them: whether a lease is
// worth its write (docs/NAMES.md section 3). Any thread; never blocks.
#pragma once

#include <chrono>

#include "base/mutex.h"
#include "fs/metadata_cache.h"

namespace lccfs {

class DirectoryActivity {
 public:
  DirectoryActivity(Clock& clock, unsigned after_changes) : clock_(clock), after_changes_(after_changes) {}

  /// Whether that was often enough within some seconds, and no other client has asked for it lately.
  bool changed(Ino directory) EXCLUDES(mutex_);
  bool looked_up(Ino directory) EXCLUDES(mutex_);
  /// Many of its names are about to be removed. Whether no other client has asked for it lately.
  bool is_emptied(Ino directory) EXCLUDES(mutex_);
  /// Another client has. A directory that is taken back again and again is left alone for longer each time.
  void asked_for(Ino directory) EXCLUDES(mutex_);

 private:
  struct Uses {
    unsigned changes = 0, lookups = 0;
  };
  struct Pause {
    std::chrono::nanoseconds asked_at{0}, pause{0}, taken_at{0};
  };
  static constexpr std::size_t limit = 50'000;

  Uses& uses_of(Ino directory) REQUIRES(mutex_);
  bool is_due(Ino directory, Uses& uses) REQUIRES(mutex_);

  Clock& clock_;
  const unsigned after_changes_;
  Mutex mutex_;
  ExpiringMap<Ino, Uses> uses_ GUARDED_BY(mutex_){limit};
  ExpiringMap<Ino, Pause> pauses_ GUARDED_BY(mutex_){limit};
};

}  // namespace lccfs
