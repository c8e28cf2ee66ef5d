// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/volume_txn.h"

#include "format/object_names.h"

namespace lccfs::txn {

using format::encode;

namespace xattr = format::xattr;

MetaTxn make_alloc() {
  return {format::alloc_object,
          "make alloc",
          {},
          {mutation::CreateExclusive{},
           mutation::SetXattr{xattr::next, encode(format::NumberRecord{format::first_number})}}};
}

MetaTxn make_root(TimeSpec now) {
  format::AttrRecord attr;
  attr.type = FileType::directory;
  attr.mode = 0755;
  attr.birth = now;
  attr.birth_token = Token{InstanceId{0}, 1};
  const Bytes time = encode(format::TimeRecord{now});
  return {format::inode_object(root_ino),
          "make root",
          {},
          {mutation::CreateExclusive{}, mutation::SetXattr{xattr::attr, encode(attr)},
           mutation::SetXattr{xattr::state, encode(format::StateRecord{})},
           mutation::SetXattr{xattr::nsub, encode(format::NumberRecord{0})}, mutation::SetXattr{xattr::atime, time},
           mutation::SetXattr{xattr::mtime, time}, mutation::SetXattr{xattr::ctime, time}}};
}

MetaTxn make_super(const format::SuperRecord& super) {
  return {format::super_object,
          "make super",
          {},
          {mutation::CreateExclusive{}, mutation::SetXattr{xattr::super, encode(super)},
           mutation::SetXattr{xattr::fences, encode(format::NumberRecord{0})}}};
}

}  // namespace lccfs::txn
