// SPDX-License-Identifier: LGPL-2.1-or-later
// The locks that this client's owners have in one file, as POSIX and flock(2) have them. A value; not for several
// threads at once.
#pragma once

#include <optional>
#include <vector>

#include "format/records.h"
#include "lccfs/file_system.h"

namespace lccfs {

class LockTable {
 public:
  bool operator==(const LockTable&) const = default;
  bool empty() const { return held_.empty(); }
  std::size_t size() const { return held_.size(); }
  /// That of another owner which is in the way; nullptr: none is.
  const LockRequest* conflict(const LockRequest& wanted) const;
  /// One of the owner's own that meets it; nullptr: none does.
  const LockRequest* own(const LockRequest& wanted) const;
  /// The owner has a lock everywhere there.
  bool covers(const LockRequest& wanted) const;
  /// The owner's exclusive locks are shared ones from now on, where they meet it.
  void lessen(const LockRequest& wanted);
  /// The owner has this lock from now on, and no other where it lies. LockType::none: no lock there.
  void set(const LockRequest& wanted);
  void drop_range_locks(std::uint64_t owner);
  /// What was locked through it.
  void drop(HandleId handle);
  /// What that owner has (nullopt: all that was locked through the handle) is `nobody`'s, which is no owner's number.
  void disown(HandleId handle, std::optional<std::uint64_t> owner, std::uint64_t nobody);

  /// As stored, for other clients.
  std::vector<format::LocksRecord::Lock> stored() const;

 private:
  std::vector<LockRequest> held_;  // of one kind and owner: apart from each other
};

/// One of another client's that is in the way; nullptr: none is.
const format::LocksRecord::Lock* conflict(const format::LocksRecord& others, const LockRequest& wanted);

}  // namespace lccfs
