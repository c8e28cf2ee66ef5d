// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What shows whether an instance lives (docs/PROTOCOL.md section 2): its process, where it is one of this host's; its
// watches, at one moment; and for how long an observer has not seen it, by the observer's own clock. One look proves
// nothing: the store may just be back from an outage in which every watch has lapsed, or the observer from a pause of
// its own. So only an unbroken series of observations counts, each of which was quick and came soon after the one
// before. Any thread, but for the series.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs {

/// Processes of this host that are known from instances' records.
class Processes {
 public:
  virtual ~Processes() = default;
  /// This process; nullopt: what /proc says is not its own, or nothing.
  virtual std::optional<format::ProcessRecord> own() const = 0;
  /// Proven: that instance's process ran in this boot and this PID namespace, and is no more. Of any other, and of one
  /// that another user runs, nothing is known.
  virtual bool is_gone(const format::InstanceRecord& record) const = 0;
};

/// The kernel's.
const Processes& system_processes();

std::string host_name();

/// Proven by the kernel, and the store knows of nothing against it: of two machines that were restored from one image of
/// a running one, each has the other's boot, PID namespace and perhaps name.
bool is_process_gone(const ObjectStore& store, const Processes& processes, const format::InstanceRecord& record);

/// `watching` if it watches Super or its session object: an absent one watches neither. `dead` if the store or the
/// kernel proves it; no process proves that an instance lives.
Result<Presence> presence_of(ObjectStore& store, const Processes& processes, InstanceId id,
                             const format::InstanceRecord& record);

/// An instance that was absent, or silent, without a break for this long is gone.
inline constexpr std::chrono::seconds gone_after{60};
/// An instance that waits for another looks, or asks, again after this long.
inline constexpr std::chrono::seconds look_again_after{1};

/// One unbroken series. Not thread-safe.
class ObservedSeries {
 public:
  using Time = std::chrono::nanoseconds;
  struct Limits {
    Time longest_observation;  ///< one that took longer waited for a store that was away, or was itself stopped
    Time longest_gap;          ///< after the end of the one before
  };
  explicit ObservedSeries(Limits limits) : limits_(limits) {}

  /// How long the series spans with this observation: from the end of its first to the begin of its last one.
  Time note(Time began, Time ended);
  void break_off() { begun_ = false; }

 private:
  Limits limits_;
  bool begun_ = false;
  Time first_ended_{0}, last_ended_{0};
};

/// Of each other instance, since when it has been absent. Not thread-safe.
class Absences {
 public:
  using Time = ObservedSeries::Time;
  static constexpr ObservedSeries::Limits limits{std::chrono::seconds(10), std::chrono::seconds(10)};

  /// A look at all its watches found none. True: it is gone.
  bool absent(InstanceId whom, Time began, Time ended);
  /// It was seen, or is expired, or could not be looked for.
  void forget(InstanceId whom) { series_.erase(whom); }
  /// The observer has lost a watch of its own: what it saw before may have been an outage.
  void begin_anew() { series_.clear(); }

 private:
  std::map<InstanceId, ObservedSeries> series_;
};

}  // namespace lccfs
