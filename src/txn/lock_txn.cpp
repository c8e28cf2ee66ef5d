// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/lock_txn.h"

#include "txn/parts.h"

namespace lccfs::txn {

using format::LocksRecord;
using format::LockStateRecord;

namespace {

Guard state_is(const Bytes& state) {
  if (state.empty()) return guard::XattrAbsent{xattr::locks};
  return guard::XattrEquals{xattr::locks, state};
}

mutation::SetXattr set_lock_state(LockStateRecord::Kind kind, Token mine) {
  return set(xattr::locks, LockStateRecord{kind, mine});
}

void set_own_key(MetaTxn& txn, Token mine, const std::vector<LocksRecord::Lock>& locks) {
  const auto key = format::locks_key(mine.instance);
  if (locks.empty()) return add(txn, mutation::RemoveKey{key});
  add(txn, mutation::SetKey{key, encode(LocksRecord{mine.number, locks})});
}

}  // namespace

MetaTxn lease_locks(Ino ino, Token mine, const Bytes& state, const std::vector<std::string>& void_keys) {
  auto txn = make(ino, "lease locks", guard::ObjectExists{}, state_is(state),
                  set_lock_state(LockStateRecord::Kind::leased, mine));
  set_own_key(txn, mine, {});
  remove_keys(txn, void_keys);
  return txn;
}

MetaTxn share_locks(Ino ino, Token mine, const Bytes& state, const std::vector<LocksRecord::Lock>& locks) {
  auto txn = make(ino, "share locks", guard::ObjectExists{}, state_is(state),
                  set_lock_state(LockStateRecord::Kind::shared, mine));
  set_own_key(txn, mine, locks);
  return txn;
}

MetaTxn lock(Ino ino, Token mine, const Bytes& state, const std::vector<LocksRecord::Lock>& locks,
             const std::vector<std::string>& void_keys) {
  auto txn =
      make(ino, "lock", guard::ObjectExists{}, state_is(state), set_lock_state(LockStateRecord::Kind::shared, mine));
  set_own_key(txn, mine, locks);
  remove_keys(txn, void_keys);
  return txn;
}

MetaTxn unlock(Ino ino, Token mine, const Bytes& stored, const std::vector<LocksRecord::Lock>& locks) {
  auto txn = make(ino, "unlock", guard::ObjectExists{}, guard::KeyEquals{format::locks_key(mine.instance), stored});
  set_own_key(txn, mine, locks);
  return txn;
}

}  // namespace lccfs::txn
