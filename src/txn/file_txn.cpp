// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/file_txn.h"

#include "format/object_names.h"

namespace lccfs::txn {

using format::encode;
using format::NumberRecord;
using format::TimeRecord;
namespace xattr = format::xattr;

namespace {

Bytes owner(InstanceId instance) { return encode(NumberRecord{instance.value}); }

void add(MetaTxn& txn, const FileChanges& changes) {
  auto set = [&txn](const char* name, Bytes value) {
    txn.mutations.emplace_back(mutation::SetXattr{name, std::move(value)});
  };
  if (changes.size_bytes) set(xattr::size, encode(NumberRecord{*changes.size_bytes}));
  if (changes.atime) set(xattr::atime, encode(TimeRecord{*changes.atime}));
  if (changes.mtime) set(xattr::mtime, encode(TimeRecord{*changes.mtime}));
  if (changes.wtime) set(xattr::wtime, encode(TimeRecord{*changes.wtime}));
  for (const auto& [block, bits] : changes.map_blocks) {
    txn.mutations.emplace_back(mutation::SetKey{format::map_key(block), encode(bits)});
  }
}

}  // namespace

MetaTxn take_lease(Ino ino, InstanceId me, std::uint64_t version) {
  return {format::inode_object(ino),
          "take lease",
          {guard::ObjectExists{}, guard::XattrAbsent{xattr::lease}, guard::VersionIs{version}},
          {mutation::SetXattr{xattr::lease, owner(me)}}};
}

MetaTxn take_over_lease(Ino ino, InstanceId old_holder, InstanceId me, std::uint64_t fence) {
  return {format::inode_object(ino),
          "take over lease",
          {guard::ObjectExists{}, guard::XattrEquals{xattr::lease, owner(old_holder)}},
          {mutation::SetXattr{xattr::lease, owner(me)}, mutation::SetXattr{xattr::fence, encode(NumberRecord{fence})}}};
}

MetaTxn give_back_lease(Ino ino, InstanceId me, const FileChanges& changes) {
  MetaTxn txn{format::inode_object(ino),
              "give back lease",
              {guard::ObjectExists{}, guard::XattrEquals{xattr::lease, owner(me)}},
              {mutation::RemoveXattr{xattr::lease}}};
  add(txn, changes);
  return txn;
}

MetaTxn change_leased_file(Ino ino, InstanceId me, const FileChanges& changes) {
  MetaTxn txn{format::inode_object(ino),
              "store size, times, map",
              {guard::ObjectExists{}, guard::XattrEquals{xattr::lease, owner(me)}},
              {}};
  add(txn, changes);
  return txn;
}

MetaTxn change_unleased_file(Ino ino, std::uint64_t version, const FileChanges& changes) {
  MetaTxn txn{format::inode_object(ino),
              "change unleased file",
              {guard::ObjectExists{}, guard::XattrAbsent{xattr::lease}, guard::VersionIs{version}},
              {}};
  add(txn, changes);
  return txn;
}

MetaTxn change_attr(Ino ino, const Bytes& old_attr, const format::AttrRecord& attr, TimeSpec ctime,
                    bool drop_capability) {
  MetaTxn txn{
      format::inode_object(ino),
      "change attr",
      {guard::XattrEquals{xattr::attr, old_attr}},
      {mutation::SetXattr{xattr::attr, encode(attr)}, mutation::SetXattr{xattr::ctime, encode(TimeRecord{ctime})}}};
  if (drop_capability) {
    txn.mutations.emplace_back(mutation::RemoveKey{format::user_attribute_key("security.capability")});
  }
  return txn;
}

}  // namespace lccfs::txn
