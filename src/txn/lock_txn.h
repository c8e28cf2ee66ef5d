// SPDX-License-Identifier: LGPL-2.1-or-later
// The transactions on a regular file's inode object that concern its locks (docs/LOCKS.md section 2). Pure functions.
// Each is guarded by a whole value that never comes back, so they carry no step number.
#pragma once

#include <vector>

#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs::txn {

/// `state`: the xattr `locks` as it was read; empty: missing. `void_keys`: k/ keys that go, of expired instances.
MetaTxn lease_locks(Ino ino, Token mine, const Bytes& state, const std::vector<std::string>& void_keys);
/// Out of memory: these are all that the holder has (empty: none).
MetaTxn share_locks(Ino ino, Token mine, const Bytes& state, const std::vector<format::LocksRecord::Lock>& locks);
/// One more lock is among these.
MetaTxn lock(Ino ino, Token mine, const Bytes& state, const std::vector<format::LocksRecord::Lock>& locks,
             const std::vector<std::string>& void_keys);
/// Only what is left of them. `stored`: the own key's value.
MetaTxn unlock(Ino ino, Token mine, const Bytes& stored, const std::vector<format::LocksRecord::Lock>& locks);

}  // namespace lccfs::txn
