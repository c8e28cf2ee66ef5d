// SPDX-License-Identifier: LGPL-2.1-or-later
// Metadata objects in LMDB: what the port's transactions and reads mean there.
#pragma once

#include <string>

#include "lccfs/object_store.h"
#include "lccfs/result.h"
#include "store/local/environment.h"

namespace lccfs::local {

/// Metadata and data: not empty, at most 255 bytes, neither '/' nor NUL, not "." or "..".
Result<> check_object_name(const std::string& object);

/// What became of one transaction of a batch.
using Answer = Result<Applied>;

/// Runs one transaction inside `transaction`. An Answer that is an error changed nothing. An error of the Result is
/// LMDB's, or a key that does not fit: part of it may stand in `transaction`, which must not be committed.
/// `growth_allowed`: see keep_reserve.
Result<Answer> apply(WriteTransaction& transaction, const MetaTxn& txn, bool growth_allowed);

Result<MetaSnapshot> query(const Transaction& transaction, const MetaRead& read);

}  // namespace lccfs::local
