// SPDX-License-Identifier: LGPL-2.1-or-later
// What can be stored at all: the port's rules for the form of a transaction, and LMDB's limit for keys.
#pragma once

#include "lccfs/object_store.h"
#include "lccfs/result.h"

namespace lccfs::local {

/// `invalid`, with what is wrong.
Result<> check_form(const MetaTxn& txn);
Result<> check_form(const MetaRead& read);

/// Metadata and data: not empty, at most 255 bytes, neither '/' nor NUL, not "." or "..".
Result<> check_object_name(const std::string& object);

}  // namespace lccfs::local
