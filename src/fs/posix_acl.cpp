// SPDX-License-Identifier: LGPL-2.1-or-later
//
// POSIX ACLs, the extended attributes system.posix_acl_access and system.posix_acl_default: get 1 read, none if memory
// knows that there is none; set and remove 1 write. The kernel decides by them which access is allowed. That the mode
// and the access ACL agree is ensured here, and in [change attr] for chmod (inodes.cpp).
//
//  # | object  | step                                                                                        | then
//  - | Inode.X | [set user attribute] guard `attr` as known; the key, its flag, ctime; an access ACL's mode  | COMMIT
//  - | Inode.X | [change attr] to remove one, or to set an access ACL that says no more than a mode: guard   | COMMIT
//    |         | `attr` as known; the mode, ctime; remove the flag and its key. Such an access ACL of a      |
//    |         | directory that is held here and has none: behind the answer, as its mode (attributes.cpp)   |
//
// Programs that know no ACLs would neither keep them in agreement with the mode, nor enforce them: so on a volume
// without the feature none is set. If there is one all the same, it was set after `lccfs upgrade`: chmod changes it,
// and new inodes inherit it, also where this instance began before the upgrade.
#include "base/expected_errors.h"
#include "fs/mode_bits.h"
#include "fs/namespace.h"
#include "fs/ownership.h"

namespace lccfs {

namespace {

Result<> check_may_have(const format::AttrRecord& attr, const std::string& name) {
  if (attr.type == FileType::symlink) return failure(ErrorCode::unsupported, "a symlink has no ACL");
  if (name == format::attribute::access_acl || attr.type == FileType::directory) return {};
  return failure(ErrorCode::permission_denied, "only a directory has a default ACL");
}

}  // namespace

Result<> Namespace::set_acl(const Caller& caller, Ino ino, const std::string& name, const Bytes& value,
                            SetgidBit setgid) {
  LCCFS_TRY(const auto acl, decode_acl(value));
  const bool is_access = name == format::attribute::access_acl;
  const bool is_mode = is_access && is_no_more_than_a_mode(acl);
  const auto edit = [&](format::AttrRecord& attr) -> Result<> {
    LCCFS_CHECK(check_is_owner(caller, ino, attr));
    LCCFS_CHECK(check_may_have(attr, name));
    if (is_access) attr.mode = mode_with(acl, attr.mode);
    if (is_access && setgid == SetgidBit::goes) attr.mode &= ~setgid_bit;
    if (is_mode) attr.flags &= ~format::attr_flag::access_acl;
    return {};
  };
  if (is_mode) {
    LCCFS_TRY(const auto known, metadata_.existing(ino));
    return or_stale(change_attr_of(ino, edit, &*known));
  }
  if (!instance_.super().has(format::feature::acls)) {
    return failure(ErrorCode::unsupported, "the volume has no ACLs: run lccfs upgrade, and mount again");
  }
  return set_attribute(ino, name, encode(acl), XattrMode::create_or_replace, edit);
}

/// As Linux has it, it is done, too, where there was none. The mode stays.
Result<> Namespace::remove_acl(const Caller& caller, Ino ino, const std::string& name) {
  if (const auto flags = own_flags_of(ino); flags && (*flags & format::own_flag_of(name)) == 0) return {};
  const auto check = [&](const format::AttrRecord& attr) { return check_is_owner(caller, ino, attr); };
  return done_or(ErrorCode::no_attribute, remove_with_flag(ino, name, check));
}

Result<std::optional<Acl>> Namespace::default_acl_of(const Inode& directory) {
  if ((directory.attr.flags & format::attr_flag::default_acl) == 0) return std::nullopt;
  // Whatever is not stored yet of its names: an ACL is changed step by step.
  const auto key = format::user_attribute_key(format::attribute::default_acl);
  LCCFS_TRY(const auto view, or_stale(read_inode(instance_, directory.ino, {.keys = {key}})));
  const auto stored = view.keys.find(key);
  if (stored == view.keys.end()) return std::nullopt;
  return stored_acl(directory.ino, format::attribute::default_acl, stored->second);
}

}  // namespace lccfs
