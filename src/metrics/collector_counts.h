// SPDX-License-Identifier: LGPL-2.1-or-later
// What a collector has done, whichever program it runs in.
#pragma once

#include <atomic>
#include <cstdint>

#include "lccfs/removed_garbage.h"
#include "metrics/exposition.h"

namespace lccfs::metrics {

/// What a pass leaves.
struct LeftByPass {
  std::uint64_t items_left = 0;
  std::uint64_t silent_clients = 0, damaged_objects = 0;
  std::uint64_t refused = 0;  ///< inodes whose data the store did not let it remove: somebody has to see to that
};

/// `write`: any thread. The others: by one thread at a time.
class CollectorCounts {
 public:
  /// By the pass that is at work. It may take hours, and may fail: what it has removed counts at once.
  void removed(const RemovedGarbage& so_far);
  /// A pass that was refused something has failed, though it did the rest.
  void passed(const LeftByPass& pass, std::int64_t wall_seconds);
  void failed();
  /// What it found in its last pass, another finds now, or does not.
  void left_to_another();
  void write(Exposition& page) const;

 private:
  std::atomic<std::uint64_t> passes_ = 0, failures_ = 0, inodes_ = 0, data_objects_ = 0, bytes_ = 0;
  std::atomic<std::uint64_t> items_left_ = 0, silent_clients_ = 0, damaged_objects_ = 0, last_pass_ = 0;  // of the last
  RemovedGarbage in_this_pass_;  // is counted already
};

}  // namespace lccfs::metrics
