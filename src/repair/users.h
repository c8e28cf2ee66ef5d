// SPDX-License-Identifier: LGPL-2.1-or-later
// Which clients use a volume. Blocking; any thread.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "format/records.h"
#include "instance/presence.h"
#include "lccfs/clock.h"
#include "lccfs/object_store.h"
#include "lccfs/result.h"

namespace lccfs::repair {

struct User {
  InstanceId id;
  format::InstanceRecord record;
  bool watches = false;  ///< it is there now, or died on another host within half a minute
};

/// Whether any client watches that instance's session object: only the instance itself does.
Result<bool> somebody_watches_session(ObjectStore& store, InstanceId id);

/// Clients whose record is missing or damaged: their watch alone tells of them, and nothing can fence them. As of all
/// others one look proves nothing: one is gone that was absent for an unbroken minute.
class UnrecordedClients {
 public:
  UnrecordedClients(ObjectStore& store, Clock& clock) : store_(store), clock_(clock) {}

  /// Looks at all of them, each second, until each watches or is gone. Those that watch. `until_one_watches`: no longer
  /// than that.
  Result<std::set<InstanceId>> wait_for(std::set<InstanceId> clients, bool until_one_watches);
  /// One more look. Where the one before is too long ago, its minute begins anew, and that of all others that were not
  /// seen with it.
  Result<bool> is_gone(InstanceId id);

 private:
  enum class Seen { watching, absent, gone };
  struct Look {
    Result<bool> watches = false;
    std::chrono::nanoseconds began{}, ended{};
  };
  Look look_for(InstanceId id) const;
  Result<Seen> judge(InstanceId id, const Look& look);

  ObjectStore& store_;
  Clock& clock_;
  Absences absences_;
  std::set<InstanceId> not_seen_;  // when somebody waited last
};

/// The instances whose records say that they live, and those that watch though their record cannot be read.
Result<std::vector<User>> users_of(ObjectStore& store);

/// "pid 7 on host, mounted at /mnt", or "pid 7 on host, lccfs-gc", for people.
std::string describe(const User& user);

}  // namespace lccfs::repair
