// SPDX-License-Identifier: LGPL-2.1-or-later
// ACLs as setfacl(1) writes them: "u::rwx,u:7:r-x,g::r--,m::rwx,o::---".
#pragma once

#include <string>

#include "fs/acl.h"
#include "support/hooks.h"

namespace lccfs::test {

inline Acl acl_of(const std::string& text) {
  Acl acl;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    const auto first = text.find(':', at), second = text.find(':', first + 1);
    const auto id = text.substr(first + 1, second - first - 1), permissions = text.substr(second + 1, end - second - 1);
    Acl::Entry entry;
    if (text[at] == 'u') entry.tag = id.empty() ? Acl::Tag::user_object : Acl::Tag::user;
    if (text[at] == 'g') entry.tag = id.empty() ? Acl::Tag::group_object : Acl::Tag::group;
    if (text[at] == 'm') entry.tag = Acl::Tag::mask;
    if (!id.empty()) entry.id = static_cast<std::uint32_t>(std::stoul(id));
    entry.permissions = static_cast<std::uint16_t>((permissions[0] == 'r' ? 4 : 0) | (permissions[1] == 'w' ? 2 : 0) |
                                                   (permissions[2] == 'x' ? 1 : 0));
    acl.entries.push_back(entry);
    at = end + 1;
  }
  return acl;
}

inline std::string text_of(const Acl& acl) {
  std::string text;
  for (const auto& [tag, permissions, id] : acl.entries) {
    const bool is_users = tag == Acl::Tag::user_object || tag == Acl::Tag::user;
    const bool is_groups = tag == Acl::Tag::group_object || tag == Acl::Tag::group;
    text += text.empty() ? "" : ",";
    text += is_users ? "u:" : is_groups ? "g:" : tag == Acl::Tag::mask ? "m:" : "o:";
    text += id == Acl::Entry::nobody ? "" : std::to_string(id);
    text += std::string(":") + ((permissions & 4) != 0 ? "r" : "-") + ((permissions & 2) != 0 ? "w" : "-") +
            ((permissions & 1) != 0 ? "x" : "-");
  }
  return text;
}

}  // namespace lccfs::test
