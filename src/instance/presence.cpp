// SPDX-License-Identifier: LGPL-2.1-or-later
#include "instance/presence.h"

#include <string>

#include "format/object_names.h"

namespace lccfs {

Result<Presence> presence_of(ObjectStore& store, const Processes& processes, InstanceId id,
                             const format::InstanceRecord& record) {
  if (processes.is_gone(record)) return Presence::dead;
  for (const std::string& object : {std::string(format::super_object), format::session_object(id)}) {
    LCCFS_TRY(const auto presence, store.presence(object, record.identity));
    if (presence != Presence::absent) return presence;
  }
  return Presence::absent;
}

}  // namespace lccfs
