// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/attribute_txn.h"

#include "format/object_names.h"

namespace lccfs::txn {

using format::encode;
using format::TimeRecord;
namespace xattr = format::xattr;

namespace {

constexpr char lead = 1;

mutation::SetXattr time(const char* name, TimeSpec value) { return {name, encode(TimeRecord{value})}; }

}  // namespace

MetaTxn set_ctime(Ino ino, TimeSpec ctime) {
  return {format::inode_object(ino), "set ctime", {guard::ObjectExists{}}, {time(xattr::ctime, ctime)}};
}

MetaTxn set_times(Ino ino, const std::optional<TimeSpec>& atime, const std::optional<TimeSpec>& mtime, TimeSpec ctime) {
  MetaTxn txn{format::inode_object(ino), "set times", {guard::ObjectExists{}}, {time(xattr::ctime, ctime)}};
  if (atime) txn.mutations.emplace_back(time(xattr::atime, *atime));
  if (mtime) txn.mutations.emplace_back(time(xattr::mtime, *mtime));
  return txn;
}

MetaTxn set_user_attribute(const UserAttribute& attribute) {
  const auto key = format::user_attribute_key(attribute.name);
  MetaTxn txn{format::inode_object(attribute.ino),
              "set user attribute",
              {},
              {mutation::SetKey{key, lead + attribute.value}, time(xattr::ctime, attribute.ctime)}};
  if (attribute.must_be_absent) txn.guards.emplace_back(guard::KeyAbsent{key});
  if (attribute.must_be_present) txn.guards.emplace_back(guard::KeyPresent{key});
  if (attribute.attr) {
    txn.guards.emplace_back(guard::XattrEquals{xattr::attr, attribute.attr->old_raw});
    txn.mutations.emplace_back(mutation::SetXattr{xattr::attr, encode(attribute.attr->changed)});
  }
  return txn;
}

MetaTxn remove_user_attribute(Ino ino, const std::string& name, TimeSpec ctime) {
  const auto key = format::user_attribute_key(name);
  return {format::inode_object(ino),
          "remove user attribute",
          {guard::KeyPresent{key}},
          {mutation::RemoveKey{key}, time(xattr::ctime, ctime)}};
}

Bytes user_attribute_value(const Bytes& stored) { return stored.empty() ? Bytes{} : stored.substr(1); }

}  // namespace lccfs::txn
