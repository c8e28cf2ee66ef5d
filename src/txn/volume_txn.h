// SPDX-License-Identifier: LGPL-2.1-or-later
// The transactions that make a volume. Pure functions.
#pragma once

#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs::txn {

MetaTxn make_alloc();
/// The root directory: nobody holds an entry for it, so it has no back-pointer; its ".." is itself.
MetaTxn make_root(TimeSpec now);
MetaTxn make_super(const format::SuperRecord& super);

}  // namespace lccfs::txn
