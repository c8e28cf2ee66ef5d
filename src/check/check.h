// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The invariants of docs/PROTOCOL.md section 3 as code: V, P, Q, M, with T of docs/DATA.md section 5, and what else
// must hold between the objects of a volume (paper section 6.2). Reads, and changes nothing.
//
// Streams over the objects: one read an inode, and one for each data object's inode at most; memory for directories,
// for inodes with several back-pointers or links, and for the queue, alone.
//
// The volume is at rest: no step is in flight, though instances may be there.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "check/finding.h"
#include "lccfs/object_store.h"
#include "lccfs/result.h"

namespace lccfs::check {

struct Progress {
  std::uint64_t objects_done = 0;
  std::uint64_t objects_expected = 0;  ///< as the store's statistics have it; 0: unknown
};

struct CheckOptions {
  unsigned jobs = 16;  ///< reads in flight
  /// Called now and then, by one thread at a time.
  std::function<void(const Progress&)> on_progress = nullptr;
};

struct CheckReport {
  std::uint64_t objects = 0;
  std::uint64_t directories = 0;
  std::uint64_t other_inodes = 0;
  std::uint64_t data_objects = 0;
  std::uint64_t findings = 0;
  std::uint64_t unreadable = 0;  ///< objects: of what others say of them nothing was judged
};
/// The error says what to do.
Result<> expect_all_was_read(const CheckReport& report);

/// Tells `on_finding` all that is wrong, one call at a time, in the order of its discovery. An error is the store's,
/// not the volume's. Inodes and data objects that it cannot read (EIO) are findings, and end the check once all are told.
/// Reads that time out are sent again (check/patient_store.h). Blocks. May be called by any thread.
Result<CheckReport> check_volume(ObjectStore& store, const CheckOptions& options,
                                 const std::function<void(const Finding&)>& on_finding);

/// The same, for small volumes.
Result<std::vector<Finding>> check_volume(ObjectStore& store);

}  // namespace lccfs::check
