// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/attribute_txn.h"

#include "txn/parts.h"

namespace lccfs::txn {

constexpr char lead = 1;

MetaTxn set_ctime(Ino ino, TimeSpec ctime) {
  return make(ino, "set ctime", guard::ObjectExists{}, set(xattr::ctime, ctime));
}

MetaTxn set_times(Ino ino, const std::optional<TimeSpec>& atime, const std::optional<TimeSpec>& mtime, TimeSpec ctime) {
  auto txn = make(ino, "set times", guard::ObjectExists{}, set(xattr::ctime, ctime));
  if (atime) add(txn, set(xattr::atime, *atime));
  if (mtime) add(txn, set(xattr::mtime, *mtime));
  return txn;
}

MetaTxn change_attr(Ino ino, const Bytes& old_attr, const format::AttrRecord& attr, TimeSpec ctime,
                    bool drop_capability) {
  auto txn = make(ino, "change attr", guard::XattrEquals{xattr::attr, old_attr}, set(xattr::attr, attr),
                  set(xattr::ctime, ctime));
  if (drop_capability) add(txn, mutation::RemoveKey{format::user_attribute_key("security.capability")});
  return txn;
}

MetaTxn set_user_attribute(const UserAttribute& attribute) {
  const auto key = format::user_attribute_key(attribute.name);
  auto txn = make(attribute.ino, "set user attribute", mutation::SetKey{key, lead + attribute.value},
                  set(xattr::ctime, attribute.ctime));
  if (attribute.must_be_absent) add(txn, guard::KeyAbsent{key});
  if (attribute.must_be_present) add(txn, guard::KeyPresent{key});
  if (attribute.attr) {
    add(txn, guard::XattrEquals{xattr::attr, attribute.attr->old_raw}, set(xattr::attr, attribute.attr->changed));
  }
  return txn;
}

MetaTxn remove_user_attribute(Ino ino, const std::string& name, TimeSpec ctime) {
  const auto key = format::user_attribute_key(name);
  return make(ino, "remove user attribute", guard::KeyPresent{key}, mutation::RemoveKey{key}, set(xattr::ctime, ctime));
}

Bytes user_attribute_value(const Bytes& stored) { return stored.empty() ? Bytes{} : stored.substr(1); }

}  // namespace lccfs::txn
