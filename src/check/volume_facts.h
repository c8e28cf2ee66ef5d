// SPDX-License-Identifier: LGPL-2.1-or-later
// What is read before all else: Super, Alloc and the queues. And the highest numbers that stand anywhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "check/sink.h"
#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs::check {

/// What the queues of all instances say, item by item as a collector would read them.
class QueueIndex {
 public:
  void add(const format::QueueItem& item);

  bool names_directory(Ino ino) const { return directories_.contains(ino); }
  /// By an item of its own, or a range. A d/ key may lead to it all the same, or a seal (of a directory that is named).
  bool leads_to(Ino ino) const;
  /// By a range.
  bool has_in_a_range(Ino ino) const;
  bool leads_to(Ino ino, bool sealed) const { return leads_to(ino) || (sealed && names_directory(ino)); }

 private:
  std::unordered_set<Ino> inodes_;
  std::unordered_set<Ino> directories_;
  std::map<Ino, Ino> ranges_;  // merged: from the first number to one past the last
};

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

/// From there on no number was ever handed out: it is foreign. A counter that is made anew stays below the last of all.
constexpr std::uint64_t end_of_use = format::numbers_end - (std::uint64_t{1} << 21);

/// Of an instance; 0: it is foreign.
constexpr std::uint64_t given_number(InstanceId instance) { return instance.value < end_of_use ? instance.value : 0; }

/// What could not be read is a finding already, and is left out.
struct VolumeFacts {
  std::optional<format::SuperRecord> super;
  std::optional<std::uint64_t> next_number;
  std::optional<std::uint64_t> fences;
  std::set<InstanceId> records;  ///< instances that Super knows of
  QueueIndex queue;              ///< of those
  Highest number, fence;

  /// A foreign one says nothing about Alloc.
  void see_number(std::uint64_t one) {
    if (one < end_of_use) number.see(one);
  }
};

/// Also puts the data pool into place. unsupported: the volume is of a newer version, and nothing was reported.
Result<> read_volume_facts(ObjectStore& store, Sink& sink, VolumeFacts& facts);

/// A session object without a record: judged by itself, its queue is read by no program.
Result<> check_stray_session(ObjectStore& store, Sink& sink, InstanceId instance);

/// Once all numbers have been seen.
void check_counters(const VolumeFacts& facts, Sink& sink);

}  // namespace lccfs::check
