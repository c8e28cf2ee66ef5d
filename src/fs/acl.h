// SPDX-License-Identifier: LGPL-2.1-or-later
//
// POSIX ACLs (acl(5)), as the kernel hands them over and as they are stored: the value of system.posix_acl_access, which
// stands beside the mode, and of system.posix_acl_default, which a directory hands down. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lccfs/result.h"
#include "lccfs/types.h"

namespace lccfs {

/// Valid: in the order of their tags, with one user_object, group_object and other each; one mask where somebody is
/// named, at most one elsewhere.
struct Acl {
  enum class Tag : std::uint16_t { user_object = 1, user = 2, group_object = 4, group = 8, mask = 16, other = 32 };
  struct Entry {
    static constexpr std::uint32_t nobody = 0xFFFFFFFF;
    Tag tag = Tag::other;
    std::uint16_t permissions = 0;  ///< read 4, write 2, execute 1
    std::uint32_t id = nobody;      ///< of a user or a group that is named
    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> entries;
  bool operator==(const Acl&) const = default;
};

/// Takes any bytes. invalid: they are no ACL.
Result<Acl> decode_acl(std::string_view bytes);
Bytes encode(const Acl& acl);

/// Whether a mode can say all that this ACL says: then it is not kept as an access ACL.
bool is_no_more_than_a_mode(const Acl& acl);
/// The mode of an inode that has this access ACL: of `mode` stays what is no permission. The bits of the group are the
/// mask, where there is one.
std::uint32_t mode_with(const Acl& acl, std::uint32_t mode);
/// The access ACL that has these permissions, as chmod changes it.
Acl with_permissions_of(Acl acl, std::uint32_t mode);
/// The access ACL of a new inode whose directory has this default ACL, and for which these permissions are asked.
Acl inherited(Acl default_acl, std::uint32_t mode);

}  // namespace lccfs
