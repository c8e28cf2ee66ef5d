// SPDX-License-Identifier: LGPL-2.1-or-later
// How long something took, in buckets that are the same for all that is measured: so they can be added up.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>

#include "metrics/sharded.h"

namespace lccfs::metrics {

/// From a request that memory answers to one that waits for another client; upper ends, included.
inline constexpr std::array<std::chrono::microseconds, 15> latency_bounds = {
    std::chrono::microseconds(50),        std::chrono::microseconds(100),       std::chrono::microseconds(250),
    std::chrono::microseconds(500),       std::chrono::microseconds(1'000),     std::chrono::microseconds(2'500),
    std::chrono::microseconds(5'000),     std::chrono::microseconds(10'000),    std::chrono::microseconds(25'000),
    std::chrono::microseconds(50'000),    std::chrono::microseconds(100'000),   std::chrono::microseconds(250'000),
    std::chrono::microseconds(1'000'000), std::chrono::microseconds(5'000'000), std::chrono::microseconds(30'000'000)};

/// Any thread. Never blocks, and takes no memory.
class LatencyHistogram {
 public:
  struct Snapshot {
    std::array<std::uint64_t, latency_bounds.size() + 1> up_to{};  ///< cumulative; the last: all
    std::chrono::nanoseconds total{0};
  };

  void add(std::chrono::nanoseconds took) {
    const auto* const bound = std::ranges::lower_bound(latency_bounds, took);
    counts_.add(static_cast<std::size_t>(bound - latency_bounds.begin()), 1);
    counts_.add(total_ns, static_cast<std::uint64_t>(std::max<std::int64_t>(0, took.count())));
  }
  Snapshot snapshot() const {
    Snapshot result;
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < result.up_to.size(); ++i) before = result.up_to[i] = before + counts_.sum(i);
    result.total = std::chrono::nanoseconds(counts_.sum(total_ns));
    return result;
  }

 private:
  static constexpr std::size_t total_ns = latency_bounds.size() + 1;
  ShardedCounts<total_ns + 1> counts_;
};

}  // namespace lccfs::metrics
