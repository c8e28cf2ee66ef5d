// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/acl.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fs/mode_bits.h"

namespace lccfs {

namespace {

using Entry = Acl::Entry;
using Tag = Acl::Tag;

// The kernel's form: little-endian, a version and then the entries.
constexpr std::uint32_t xattr_version = 2;
constexpr std::size_t version_bytes = 4, entry_bytes = 8;
constexpr std::uint32_t all_permissions = 7;

template <class Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    number |= static_cast<Number>(static_cast<Number>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i));
  }
  return number;
}

template <class Number>
void append(Bytes& bytes, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) bytes.push_back(static_cast<char>(number >> (8 * i) & 0xFF));
}

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
  if (bytes.size() < version_bytes || (bytes.size() - version_bytes) % entry_bytes != 0) return no_acl();
  if (number_at<std::uint32_t>(bytes, 0) != xattr_version) return no_acl();
  Acl acl;
  for (std::size_t at = version_bytes; at < bytes.size(); at += entry_bytes) {
    const Tag tag{number_at<std::uint16_t>(bytes, at)};
    const auto id = number_at<std::uint32_t>(bytes, at + 4);
    acl.entries.push_back({tag, number_at<std::uint16_t>(bytes, at + 2), names_somebody(tag) ? id : Entry::nobody});
  }
  if (!is_valid(acl)) return no_acl();
  return acl;
}

Bytes encode(const Acl& acl) {
  Bytes bytes;
  append(bytes, xattr_version);
  for (const auto& entry : acl.entries) {
    append(bytes, std::to_underlying(entry.tag));
    append(bytes, entry.permissions);
    append(bytes, entry.id);
  }
  return bytes;
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
