// SPDX-License-Identifier: LGPL-2.1-or-later
// One look at an instance, as anybody can take it.
#pragma once

#include "format/records.h"
#include "instance/processes.h"
#include "lccfs/object_store.h"

namespace lccfs {

/// `watching` if it watches Super or its session object: absent is who watches neither. `dead` if the store or the
/// kernel proves it; no process proves that an instance lives.
Result<Presence> presence_of(ObjectStore& store, const Processes& processes, InstanceId id,
                             const format::InstanceRecord& record);

}  // namespace lccfs
