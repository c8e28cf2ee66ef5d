// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/acl.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "fs/mode_bits.h"

namespace lccfs {

namespace {

using Entry = Acl::Entry;
using Tag = Acl::Tag;

// The kernel's form: little-endian, a version and then the entries.
constexpr std::uint32_t xattr_version = 2;
constexpr std::size_t entry_bytes = 8;
constexpr std::uint32_t all_permissions = 7;

bool names_somebody(Tag tag) { return tag == Tag::user || tag == Tag::group; }

bool is_valid(const Entry& entry) {
  constexpr Tag tags[] = {Tag::user_object, Tag::user, Tag::group_object, Tag::group, Tag::mask, Tag::other};
  if (std::ranges::find(tags, entry.tag) == std::end(tags) || entry.permissions > all_permissions) return false;
  return !names_somebody(entry.tag) || entry.id != Entry::nobody;
}

bool is_valid(const Acl& acl) {
  const auto count = [&acl](Tag tag) { return std::ranges::count(acl.entries, tag, &Entry::tag); };
  for (const Tag tag : {Tag::user_object, Tag::group_object, Tag::other}) {
    if (count(tag) != 1) return false;
  }
  const bool names_any = count(Tag::user) + count(Tag::group) != 0;
  return count(Tag::mask) <= 1 && (!names_any || count(Tag::mask) == 1) &&
         std::ranges::is_sorted(acl.entries, {}, &Entry::tag) &&
         std::ranges::all_of(acl.entries, [](const Entry& entry) { return is_valid(entry); });
}

/// Those that the permissions of a mode stand for, each with where its bits are.
template <class Entries, class Work>
void for_each_class(Entries& entries, const Work& work) {
  const bool has_mask = std::ranges::find(entries, Tag::mask, &Entry::tag) != entries.end();
  for (auto& entry : entries) {
    if (entry.tag == Tag::user_object) work(entry, 6U);
    if (entry.tag == (has_mask ? Tag::mask : Tag::group_object)) work(entry, 3U);
    if (entry.tag == Tag::other) work(entry, 0U);
  }
}

}  // namespace

Result<Acl> decode_acl(std::string_view bytes) {
  const auto no_acl = [] { return failure(ErrorCode::invalid, "not the bytes of an ACL"); };
  ByteReader in(bytes);
  if (in.get<std::uint32_t>() != xattr_version || in.left() % entry_bytes != 0) return no_acl();
  Acl acl;
  while (in.left() != 0) {
    const Tag tag{in.get<std::uint16_t>()};
    const auto permissions = in.get<std::uint16_t>();
    const auto id = in.get<std::uint32_t>();
    acl.entries.push_back({tag, permissions, names_somebody(tag) ? id : Entry::nobody});
  }
  if (!is_valid(acl)) return no_acl();
  return acl;
}

Bytes encode(const Acl& acl) {
  ByteWriter out;
  out.put(xattr_version);
  for (const auto& entry : acl.entries) {
    out.put(std::to_underlying(entry.tag));
    out.put(entry.permissions);
    out.put(entry.id);
  }
  return out.take();
}

bool is_no_more_than_a_mode(const Acl& acl) { return acl.entries.size() == 3; }

std::uint32_t mode_with(const Acl& acl, std::uint32_t mode) {
  mode &= ~access_bits;
  for_each_class(acl.entries, [&mode](const Entry& entry, unsigned shift) {
    mode |= static_cast<std::uint32_t>(entry.permissions) << shift;
  });
  return mode;
}

Acl with_permissions_of(Acl acl, std::uint32_t mode) {
  for_each_class(acl.entries, [mode](Entry& entry, unsigned shift) {
    entry.permissions = static_cast<std::uint16_t>(mode >> shift & all_permissions);
  });
  return acl;
}

Acl inherited(Acl default_acl, std::uint32_t mode) {
  for_each_class(default_acl.entries, [mode](Entry& entry, unsigned shift) {
    entry.permissions = static_cast<std::uint16_t>(entry.permissions & mode >> shift & all_permissions);
  });
  return default_acl;
}

}  // namespace lccfs
