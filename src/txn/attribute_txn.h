// SPDX-License-Identifier: LGPL-2.1-or-later
// The transactions on attributes, times and extended attributes of any inode. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs::txn {

/// For Instance::run_repeatable: no guard but "exists". A regular file's other times belong to its lease's holder.
MetaTxn set_ctime(Ino ino, TimeSpec ctime);
/// The same where it is `before` now.
MetaTxn set_next_ctime(Ino ino, TimeSpec before, TimeSpec ctime);
MetaTxn set_times(Ino ino, const std::optional<TimeSpec>& atime, const std::optional<TimeSpec>& mtime, TimeSpec ctime);

/// `attr` with the flags that answer "there is none" without a read, changed in the same step.
struct AttrChange {
  Bytes old_raw;
  format::AttrRecord changed;
};
/// An access ACL as its key was read, and its new value.
struct AccessAclChange {
  Bytes old_stored;
  Bytes changed;
};
/// Changes `attr`, ctime and the access ACL, under guards on the old values; removes on the way what the lost flags
/// stand for.
MetaTxn change_attr(Ino ino, const AttrChange& attr, TimeSpec ctime, std::uint32_t lost_flags,
                    const std::optional<AccessAclChange>& acl);

struct UserAttribute {
  Ino ino;
  const std::string& name;
  const Bytes& value;
  bool must_be_absent = false, must_be_present = false;
  std::optional<AttrChange> attr;
  TimeSpec ctime;
};
MetaTxn set_user_attribute(const UserAttribute& attribute);
MetaTxn remove_user_attribute(Ino ino, const std::string& name, TimeSpec ctime);

/// What stands in the key is led by one byte, because no key's value is ever empty.
Bytes user_attribute_value(const Bytes& stored);

}  // namespace lccfs::txn
