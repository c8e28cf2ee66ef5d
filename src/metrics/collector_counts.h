// SPDX-License-Identifier: LGPL-2.1-or-later
// What a collector has done, whichever program it runs in.
#pragma once

#include <atomic>
#include <cstdint>

#include "metrics/exposition.h"

namespace lccfs::metrics {

struct CollectedInPass {
  std::uint64_t inodes = 0, data_objects = 0, bytes = 0;
  std::uint64_t items_left = 0;
  std::uint64_t silent_clients = 0, damaged_objects = 0;
};

/// Any thread.
class CollectorCounts {
 public:
  void passed(const CollectedInPass& pass, std::int64_t wall_seconds);
  void failed() { ++failures_; }
  /// What it found in its last pass, another finds now, or does not.
  void left_to_another();
  void write(Exposition& page) const;

 private:
  std::atomic<std::uint64_t> passes_ = 0, failures_ = 0, inodes_ = 0, data_objects_ = 0, bytes_ = 0;
  std::atomic<std::uint64_t> items_left_ = 0, silent_clients_ = 0, damaged_objects_ = 0, last_pass_ = 0;  // of the last
};

}  // namespace lccfs::metrics
