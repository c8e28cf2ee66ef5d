// SPDX-License-Identifier: LGPL-2.1-or-later
// Which clients use a volume. Blocking; any thread.
#pragma once

#include <string>
#include <vector>

#include "format/records.h"
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

/// The instances whose records say that they live, and those that watch though their record cannot be read.
Result<std::vector<User>> users_of(ObjectStore& store);

/// "pid 7 on host, mounted at /mnt", or "pid 7 on host, lccfs-gc", for people.
std::string describe(const User& user);

}  // namespace lccfs::repair
