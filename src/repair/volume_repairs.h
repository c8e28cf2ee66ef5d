// SPDX-License-Identifier: LGPL-2.1-or-later
// Repairs that come first: what an instance needs to start (Super, Alloc, the root), and the queues, so that all that
// follows rests on what they say. No instance is needed. Blocking; one thread.
#pragma once

#include "check/finding.h"
#include "lccfs/clock.h"
#include "repair/objects.h"
#include "repair/repair.h"

namespace lccfs::repair {

class VolumeRepairs {
 public:
  VolumeRepairs(Objects& objects, Clock& clock) : objects_(objects), clock_(clock) {}

  /// Whether it is for this class.
  static bool takes(const check::Finding& finding);
  Result<Repair> repair(const check::Finding& finding);

 private:
  Result<Repair> make_missing(const std::string& object);
  Result<Repair> raise_number(const std::string& object, const char* xattr, std::uint64_t least);
  Result<Repair> repair_part(const check::Finding& finding);
  Result<Repair> derive(const Object& object, const txn::Part& part);
  Result<Repair> add_ended_record(InstanceId instance);
  Result<std::uint64_t> highest_number();
  Result<std::uint64_t> highest_fence();

  Objects& objects_;
  Clock& clock_;
};

}  // namespace lccfs::repair
