// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <thread>

#include "lccfs/clock.h"
#include "lccfs/file_system.h"
#include "metrics/collector_counts.h"

namespace lccfs::fuse {

/// Every client helps to reclaim what was removed: calls the collector about once a grace period, until the client is
/// fenced. `fs` and `counts` outlive the thread, and `fs` is not unmounted before. The thread ends after the steps on inodes
/// that are in flight, and waits for no data object.
std::jthread start_collector_thread(FileSystem& fs, Clock& clock, metrics::CollectorCounts& counts);

}  // namespace lccfs::fuse
