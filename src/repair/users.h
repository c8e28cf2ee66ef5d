// SPDX-License-Identifier: LGPL-2.1-or-later
// Who uses a volume. Blocking; any thread.
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
  bool watches = false;  ///< it is there now, or was until a minute ago
};

/// The instances whose records say that they live. What cannot be read of Super is left out.
Result<std::vector<User>> users_of(ObjectStore& store);

/// "pid 7 on host, mounted at /mnt", for people.
std::string describe(const User& user);

}  // namespace lccfs::repair
