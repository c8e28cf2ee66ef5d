// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Repairs of a volume that is not in use: every instance but the repairer's own is expired. Each finding is repaired by
// itself, with steps that may stop anywhere and be done again; a step on an object that has changed since it was read
// does nothing. Nothing of value is deleted on doubt: what has content and no name goes to /lost+found, unless the user
// wants it deleted. What is garbage the collector decides: repairs of the queue only log what it is to look at.
//
// Blocking; one call at a time for a volume, or several clients' at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "check/check.h"
#include "check/finding.h"
#include "lccfs/clock.h"
#include "lccfs/object_store.h"
#include "lccfs/result.h"

namespace lccfs::repair {

enum class Orphans { keep, remove };

/// What became of one finding.
struct Repair {
  bool done = false;
  std::string text;          ///< what was done, or why nothing could be
  bool found_again = false;  ///< not done, but by a later check it can be
};

struct RepairReport {
  check::CheckReport check;    ///< of the last check
  std::uint64_t repaired = 0;  ///< findings, of all checks
  std::uint64_t left = 0;      ///< of the last check, those that could not be repaired
};

struct RepairOptions {
  Orphans orphans = Orphans::keep;
  bool though_in_use = false;  ///< clients that are there now are left alone; otherwise they are an error (busy)
  std::size_t findings_at_once = 100'000;  ///< that are kept in memory; further ones are found by further checks
  check::CheckOptions check;
  /// Once for each repair; for what is left when all is done, or an error ends it.
  std::function<void(const check::Finding&, const Repair&)> on_repair = [](const auto&, const auto&) {};
};

/// Checks and repairs, in turn, until a check finds nothing that a repair could change; runs the collector without a
/// grace period in between. Tells each finding once, when it has been dealt with. A volume in which nothing is found is
/// not touched. Clients that are gone are fenced first.
Result<RepairReport> repair_volume(const std::shared_ptr<ObjectStore>& store, Clock& clock,
                                   const RepairOptions& options);

}  // namespace lccfs::repair
