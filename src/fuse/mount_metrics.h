// SPDX-License-Identifier: LGPL-2.1-or-later
// The instruments of one mount (docs/METRICS.md).
#pragma once

#include "lccfs/file_system.h"
#include "metrics/collector_counts.h"
#include "metrics/directories.h"
#include "metrics/operations.h"

namespace lccfs::fuse {

struct MountMetrics {
  MountMetrics(Clock& clock, std::chrono::nanoseconds slow_after);

  /// To be called about once a second, by one thread.
  void tick(const FileSystem& fs);
  void write(metrics::Exposition& page, const FileSystem& fs) const;

  metrics::Operations operations, store;
  metrics::Directories directories;
  metrics::CollectorCounts collector;
};

}  // namespace lccfs::fuse
