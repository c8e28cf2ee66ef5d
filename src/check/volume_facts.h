// SPDX-License-Identifier: LGPL-2.1-or-later
// What is read before all else: Super, Alloc and the queues. And the highest numbers that stand anywhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "check/queue_index.h"
#include "check/sink.h"
#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs::check {

/// Any thread.
class Highest {
 public:
  void see(std::uint64_t number) {
    auto before = value_.load();
    while (before < number && !value_.compare_exchange_weak(before, number)) {
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

/// What could not be read is a finding already, and is left out.
struct VolumeFacts {
  std::optional<format::SuperRecord> super;
  std::optional<std::uint64_t> next_number;
  std::optional<std::uint64_t> fences;
  std::set<InstanceId> records;  ///< instances that Super knows of
  QueueIndex queue;              ///< of those
  Highest number, fence;
};

/// Also puts the data pool into place. unsupported: the volume is of a newer version, and nothing was reported.
Result<> read_volume_facts(ObjectStore& store, Sink& sink, VolumeFacts& facts);

/// A session object without a record: judged by itself, its queue is read by nobody.
Result<> check_stray_session(ObjectStore& store, Sink& sink, InstanceId instance);

/// Once all numbers have been seen.
void check_counters(const VolumeFacts& facts, Sink& sink);

}  // namespace lccfs::check
