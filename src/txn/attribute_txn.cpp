// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/attribute_txn.h"

#include "txn/parts.h"

namespace lccfs::txn {

MetaTxn set_ctime(Ino ino, TimeSpec ctime) {
  return make(ino, "set ctime", guard::ObjectExists{}, set(xattr::ctime, ctime));
}

MetaTxn set_next_ctime(Ino ino, TimeSpec before, TimeSpec ctime) {
  return make(ino, "set next ctime", guard::XattrEquals{xattr::ctime, encode(format::TimeRecord{before})},
              set(xattr::ctime, ctime));
}

MetaTxn set_times(Ino ino, const std::optional<TimeSpec>& atime, const std::optional<TimeSpec>& mtime, TimeSpec ctime) {
  auto txn = make(ino, "set times", guard::ObjectExists{}, set(xattr::ctime, ctime));
  if (atime) add(txn, set(xattr::atime, *atime));
  if (mtime) add(txn, set(xattr::mtime, *mtime));
  return txn;
}

MetaTxn change_attr(Ino ino, const AttrChange& attr, TimeSpec ctime, std::uint32_t lost_flags,
                    const std::optional<AccessAclChange>& acl) {
  auto txn = make(ino, "change attr", guard::XattrEquals{xattr::attr, attr.old_raw}, set(xattr::attr, attr.changed),
                  set(xattr::ctime, ctime));
  for (const auto& name : format::attributes_of_flags(lost_flags)) {
    add(txn, mutation::RemoveKey{format::user_attribute_key(name)});
  }
  if (acl) {
    add(txn, guard::KeyEquals{format::user_attribute_key(format::attribute::access_acl), acl->old_stored},
        set_attribute(format::attribute::access_acl, acl->changed));
  }
  return txn;
}

MetaTxn set_user_attribute(const UserAttribute& attribute) {
  const auto key = format::user_attribute_key(attribute.name);
  auto txn = make(attribute.ino, "set user attribute", set_attribute(attribute.name, attribute.value),
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
