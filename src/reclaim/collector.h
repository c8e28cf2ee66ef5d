// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The collector: consumes the reclaim queues of all instances (paper section 6.1; docs/PROTOCOL.md sections 2, 5 and
// 6). Several may work on one volume, each of them may die at any point. A collector works for an instance: a mount's
// own, or one of its program's.
//
// One thread runs a pass; it starts threads of its own. Deletes go out `jobs` at a time, at most
// `operations_per_second`.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "instance/instance.h"
#include "lccfs/object_store.h"
#include "lccfs/removed_garbage.h"

namespace lccfs::reclaim {

struct CollectorOptions {
  unsigned jobs = 16;                       ///< store operations in flight
  std::uint64_t operations_per_second = 0;  ///< of those that change something; 0: no limit
  std::chrono::seconds grace{60};           ///< items of live instances that are younger are left alone
};

struct Tally;
class Unanswered;

/// A client that a pass met.
struct OtherInstance {
  InstanceId id;
  std::string host;
  std::uint64_t pid = 0;
};

struct PassReport {
  std::uint64_t items_seen = 0;      ///< queue items looked at
  std::uint64_t items_done = 0;      ///< of those, the ones that are no longer there
  std::uint64_t items_left = 0;      ///< for a later pass: too young, not retired, or open in some client
  std::uint64_t inodes_removed = 0;  ///< a dry run: that would be
  std::uint64_t data_objects_removed = 0;
  std::uint64_t bytes_freed = 0;
  std::uint64_t names_removed = 0;      ///< out of directories that were deleted with content in them
  std::uint64_t inodes_corrected = 0;   ///< link counts and back-pointers
  std::uint64_t instances_removed = 0;  ///< that were expired, and had nothing left in their queues
  std::uint64_t open_elsewhere = 0;     ///< unnamed inodes that stay because some client has them open
  std::vector<OtherInstance> gone;      ///< fenced by this pass; a dry run: that would be
  std::vector<OtherInstance> not_seen;  ///< a dry run: they do not watch now; a pass fences them if that lasts a minute
  std::vector<OtherInstance> silent;    ///< watch, and did not answer: nothing that depends on them was done
  std::vector<std::string> damaged;     ///< one line each: objects that could not be read; lccfs-fsck is for them
  std::uint64_t refused = 0;  ///< inode numbers whose data the store did not let this client remove: they stay
  std::string refusal;        ///< the first such answer, which names the object; empty: there was none
  /// Some of the silent are gone, for all that is known, and another client may fence them.
  bool is_for_others = false;
  std::chrono::nanoseconds took{0};
};

/// Whether a pass has changed anything of the volume.
bool did_something(const PassReport& report);

class Collector {
 public:
  /// `instance` outlives the collector, and is not read-only.
  Collector(Instance& instance, const CollectorOptions& options);

  /// Works until nothing is left that can be done now. What does not answer is left for a later pass: data objects for
  /// half a minute, or once it is stopped. So is what the store does not let it remove. It waits for its steps on inodes.
  /// Errors are the store's: what was done stays done, `on_removed` has heard of it, and the next pass continues.
  Result<PassReport> pass(const std::stop_token& stop = {}, const OnGarbageRemoved& on_removed = nullptr);

  /// Whether another collector has begun a pass within the last `interval`: one that runs in the background then leaves
  /// this turn to it. One whose last pass has failed, or did nothing because this client lacks a right, takes no turn:
  /// others may have it.
  bool another_is_at_work(std::chrono::nanoseconds interval) const;

 private:
  Result<> run_rounds(Tally& tally, PassReport& report, const std::stop_token& stop);

  Instance& instance_;
  const CollectorOptions options_;
  const std::shared_ptr<Unanswered> unanswered_;
  bool got_nowhere_ = false;  // in the last pass
};

/// What a pass would do: asks the instances, and changes nothing. No instance is needed. Of directories that it would mark
/// dead it does not know whether they are open: they count as removed. not_found: there is no volume.
Result<PassReport> dry_run(ObjectStore& store, Clock& clock, const CollectorOptions& options);

/// What waits in the queues of all instances. Only reads.
struct Backlog {
  std::uint64_t items = 0;          ///< without range items: these stand for inodes to come
  std::optional<TimeSpec> oldest;   ///< when the oldest item was logged
  std::uint64_t inodes = 0;         ///< unnamed ones that directory and inode items lead to
  std::uint64_t bytes_waiting = 0;  ///< what those occupy, as far as is believed (docs/DATA.md section 1)
  bool is_more = false;             ///< inodes beyond `most_inodes` were not looked at
};
/// Reads up to two objects an inode, one after the other.
Result<Backlog> measure_backlog(ObjectStore& store, std::size_t most_inodes = 10'000);

}  // namespace lccfs::reclaim
