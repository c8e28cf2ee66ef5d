// SPDX-License-Identifier: LGPL-2.1-or-later
// Parts of inode objects that are missing, cannot be read, or are none of the format's; here the xattrs.
#include <algorithm>
#include <variant>

#include "format/layout.h"
#include "repair/outcome.h"
#include "repair/record_parts.h"
#include "repair/repairs.h"

namespace lccfs::repair {

using Kind = check::Finding::Kind;
using format::NumberRecord;
using format::TimeRecord;
namespace xattr = format::xattr;

namespace {

bool is_time(const std::string& name) {
  return name == xattr::atime || name == xattr::mtime || name == xattr::ctime || name == xattr::wtime;
}

}  // namespace

Result<Repair> Repairs::put(const Object& object, const txn::Part& part, const Bytes& value, std::string what) {
  LCCFS_TRY(const bool done, objects_.change(txn::put_part(object.as_read, part, value)));
  return stepped(done, std::move(what));
}

Result<Repair> Repairs::drop(const Object& object, const txn::Part& part, std::string what) {
  LCCFS_TRY(const bool done, objects_.change(txn::drop_part(object.as_read, part)));
  return stepped(done, std::move(what));
}

/// Of a symlink the payload is its target, and the size follows it; nothing else has one.
Result<Repair> Repairs::repair_payload(const Object& object, const Finding& finding) {
  if (object.payload != finding.seen) return settled();
  if (object.is(FileType::symlink)) {
    const std::uint64_t length = object.payload.size();
    if (object.number(xattr::size) == length) return settled();
    if (length == 0 || length > format::symlink_limit_bytes) return left("nothing tells what the target was");
    return put(object, {xattr::size}, encode(NumberRecord{length}), "size is set to the length of the target");
  }
  LCCFS_TRY(const bool dropped, objects_.change(txn::drop_payload(object.as_read)));
  return stepped(dropped, "removed");
}

Result<Repair> Repairs::repair_part(const Finding& finding) {
  const txn::Part part{finding.part, finding.is_key};
  const auto keys = part.is_key ? std::vector{part.name} : std::vector<std::string>{};
  LCCFS_TRY(const auto object, objects_.read_keys(finding.object, keys));
  if (!object) return settled();
  if (part.name.empty()) return repair_payload(*object, finding);
  const Bytes* value = object->value_of(part);
  if (finding.kind == Kind::missing_part && value != nullptr) return settled();
  if (finding.kind != Kind::missing_part && (value == nullptr || *value != finding.seen)) return settled();
  const bool is_name = part.is_key && format::parse_entry_key(part.name) && object->is(FileType::directory);
  if (finding.kind == Kind::unknown_part && !is_name) return drop(*object, part, "removed");
  if (value != nullptr) {
    if (const auto right = corrected(finding.object, part, *value))
      return put(*object, part, *right, "one byte corrected");
  }
  return part.is_key ? derive_key(*object, finding.ino, part) : derive_xattr(*object, finding.ino, part.name);
}

Result<Repair> Repairs::derive_xattr(const Object& inode, Ino ino, const std::string& name) {
  const txn::Part part{name};
  if (name == xattr::state) {
    return put(inode, part, encode(format::StateRecord{}), "taken for live: the collector removes what has no name");
  }
  if (name == xattr::parent) return drop(inode, part, "removed: directories that have a name for it are looked for");
  if (name == xattr::size && inode.is(FileType::symlink) && !inode.payload.empty()) {
    return put(inode, part, encode(NumberRecord{inode.payload.size()}), "set to the length of the target");
  }
  if (name == xattr::nsub)
    return count_subdirectories({.kind = Kind::subdirectories, .object = inode.as_read.object, .text = {}, .ino = ino});
  if (is_time(name)) return derive_time(inode, part);
  if (name == xattr::lease) return void_lease(inode, ino);
  if (name == xattr::fence) {
    LCCFS_TRY(const auto super, objects_.read_keys(format::super_object, {}));
    const auto fences = super ? super->number(xattr::fences) : std::nullopt;
    if (fences) return put(inode, part, encode(NumberRecord{*fences}), "set to the number of fences so far");
  }
  return left("nothing tells what it was");
}

/// A time that is a little late only makes others look again.
Result<Repair> Repairs::derive_time(const Object& inode, const txn::Part& part) {
  std::optional<TimeSpec> latest;
  for (const char* name : {xattr::atime, xattr::mtime, xattr::ctime, xattr::wtime}) {
    const auto other = inode.record<TimeRecord>(name);
    if (other) latest = std::max(latest.value_or(other->time), other->time);
  }
  if (!latest && inode.attr()) latest = inode.attr()->birth;
  if (!latest) return left("no other time tells what it was");
  return put(inode, part, encode(TimeRecord{*latest}), "set to the latest of the other times");
}

/// Whoever held it is over, and what he left past the size is cut, as whoever took it over would have done.
Result<Repair> Repairs::void_lease(const Object& inode, Ino ino) {
  const auto size_bytes = inode.number(xattr::size);
  if (!size_bytes) return left("without the size nobody knows what to cut");
  LCCFS_TRY(const auto with_map, objects_.read_inode(ino, "m/"));
  if (!with_map) return settled();
  const std::uint64_t boundary = *size_bytes / object_size_bytes();
  for (const auto& [key, value] : with_map->keys) {
    const auto block = format::parse_map_key(key);
    const auto bits = format::decode<format::MapBlock>(value);
    if (!block || !bits) continue;
    for (std::uint64_t bit = 0; bit < format::MapBlock::objects; ++bit) {
      const ObjectIndex index{*block * format::MapBlock::objects + bit};
      if (!bits->may_exist[bit] || index.value < boundary) continue;
      const auto below = format::bytes_within(object_size_bytes(), index, *size_bytes);
      const auto object = format::data_object(ino, index);
      LCCFS_CHECK(below == 0 ? objects_.remove_data(object) : objects_.cut_data(object, below));
    }
  }
  return drop(inode, {xattr::lease}, "removed: its holder is over");
}

}  // namespace lccfs::repair
