// SPDX-License-Identifier: LGPL-2.1-or-later
// Metadata transactions and reads as single RADOS operations.
#pragma once

#include "lccfs/object_store.h"
#include "store/rados/step.h"

namespace lccfs::rados {

void apply(librados::IoCtx& pool, RequestsInFlight& in_flight, MetaTxn txn, ObjectStore::ApplyDone done);
void query(librados::IoCtx& pool, RequestsInFlight& in_flight, MetaRead read, ObjectStore::QueryDone done);

}  // namespace lccfs::rados
