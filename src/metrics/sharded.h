// SPDX-License-Identifier: LGPL-2.1-or-later
// Counters that many threads add to at once: each thread has its own cache line, or shares it with few. Only a scrape
// adds them up.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lccfs::metrics {

inline constexpr std::size_t shards = 8;

/// The calling thread's, below `shards`; the same for as long as it runs.
inline std::size_t own_shard() {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % shards;
  return mine;
}

/// Any thread. Never blocks, and takes no memory.
template <std::size_t size>
class ShardedCounts {
 public:
  void add(std::size_t which, std::uint64_t amount) {
    shards_[own_shard()].counts[which].fetch_add(amount, std::memory_order_relaxed);
  }
  std::uint64_t sum(std::size_t which) const {
    std::uint64_t sum = 0;
    for (const Shard& shard : shards_) sum += shard.counts[which].load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct alignas(64) Shard {
    std::array<std::atomic<std::uint64_t>, size> counts{};
  };
  std::array<Shard, shards> shards_;
};

}  // namespace lccfs::metrics
