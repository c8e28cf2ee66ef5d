// SPDX-License-Identifier: LGPL-2.1-or-later
#include "repair/users.h"

#include "format/object_names.h"
#include "repair/objects.h"

namespace lccfs::repair {

namespace {

Result<bool> watches(ObjectStore& store, InstanceId id, const Bytes& identity) {
  for (const std::string& object : {std::string(format::super_object), format::session_object(id)}) {
    const auto watching = store.is_watching(object, identity);
    const bool no_identity =
        !watching && (watching.error().code == ErrorCode::corrupt || watching.error().code == ErrorCode::invalid);
    if (!watching && !no_identity) return std::unexpected(watching.error());
    if (watching && *watching) return true;
  }
  return false;
}

}  // namespace

Result<std::vector<User>> users_of(ObjectStore& store) {
  std::vector<User> users;
  LCCFS_TRY(const auto super, Objects(store).read(format::super_object, "s/"));
  if (!super) return users;
  for (const auto& [key, value] : super->keys) {
    const auto id = format::parse_instance_key(key);
    auto record = format::decode<format::InstanceRecord>(value);
    if (!id || !record || record->state != format::InstanceRecord::State::live) continue;
    LCCFS_TRY(const bool there, watches(store, *id, record->identity));
    users.push_back({*id, std::move(*record), there});
  }
  return users;
}

std::string describe(const User& user) {
  const auto& record = user.record;
  return "pid " + std::to_string(record.pid) + " on " + record.host +
         (record.mount_id.empty() ? "" : ", mounted at " + record.mount_id);
}

}  // namespace lccfs::repair
