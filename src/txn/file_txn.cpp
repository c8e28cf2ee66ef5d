// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/file_txn.h"

#include "txn/parts.h"

namespace lccfs::txn {
namespace {

guard::XattrEquals lease_is(InstanceId holder) { return {xattr::lease, encode(format::NumberRecord{holder.value})}; }

MetaTxn with(MetaTxn txn, const FileChanges& changes) {
  if (changes.size_bytes) add(txn, set(xattr::size, *changes.size_bytes));
  if (changes.atime) add(txn, set(xattr::atime, *changes.atime));
  if (changes.mtime) add(txn, set(xattr::mtime, *changes.mtime));
  if (changes.wtime) add(txn, set(xattr::wtime, *changes.wtime));
  set_map(txn, changes.map_blocks);
  return txn;
}

MetaTxn with_taken(MetaTxn txn, const std::optional<Token>& taken) {
  if (taken) add(txn, set(xattr::taken, format::TakenRecord{*taken}));
  return txn;
}

}  // namespace

MetaTxn take_lease(Ino ino, InstanceId me, std::uint64_t version, const std::optional<Token>& taken) {
  auto txn = make(ino, "take lease", guard::ObjectExists{}, guard::XattrAbsent{xattr::lease}, guard::VersionIs{version},
                  set(xattr::lease, me.value));
  return with_taken(std::move(txn), taken);
}

MetaTxn take_over_lease(Ino ino, InstanceId old_holder, InstanceId me, std::uint64_t fence) {
  return make(ino, "take over lease", guard::ObjectExists{}, lease_is(old_holder), set(xattr::lease, me.value),
              set(xattr::fence, fence));
}

MetaTxn release_lease(Ino ino, InstanceId me, const FileChanges& changes) {
  auto txn = make(ino, "release lease", guard::ObjectExists{}, lease_is(me), mutation::RemoveXattr{xattr::lease});
  return with(std::move(txn), changes);
}

MetaTxn change_leased_file(Ino ino, InstanceId me, const FileChanges& changes) {
  auto txn = make(ino, "store size, times, map", guard::ObjectExists{}, lease_is(me));
  return with(std::move(txn), changes);
}

MetaTxn change_unleased_file(Ino ino, std::uint64_t version, const FileChanges& changes) {
  auto txn = make(ino, "change unleased file", guard::ObjectExists{}, guard::XattrAbsent{xattr::lease},
                  guard::VersionIs{version});
  return with(std::move(txn), changes);
}

MetaTxn add_opener(Ino ino, InstanceId opener, const std::optional<Token>& taken) {
  auto txn = make(ino, "add opener", guard::ObjectExists{});
  if (taken) add(txn, guard::XattrAbsent{xattr::taken});
  return with_opener(std::move(txn), opener, taken);
}

MetaTxn with_opener(MetaTxn txn, InstanceId opener, const std::optional<Token>& taken) {
  add(txn, mark(format::opener_key(opener)));
  return with_taken(std::move(txn), taken);
}

MetaTxn remove_opener(Ino ino, InstanceId opener) {
  return make(ino, "remove opener", guard::ObjectExists{}, mutation::RemoveKey{format::opener_key(opener)});
}

}  // namespace lccfs::txn
