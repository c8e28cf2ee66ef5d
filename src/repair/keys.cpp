// SPDX-License-Identifier: LGPL-2.1-or-later
// Keys of inode objects whose values cannot be read.
#include "format/layout.h"
#include "repair/outcome.h"
#include "repair/record_parts.h"
#include "repair/repairs.h"

namespace lccfs::repair {

using format::MapBlock;
namespace xattr = format::xattr;

namespace {

constexpr char user_value_lead = 1;

bool is_marker_key(const std::string& key) {
  return format::parse_reverse_key(key) || format::parse_back_pointer_key(key) || format::parse_detached_key(key);
}

std::uint32_t flags_of(const std::string& attribute) {
  std::uint32_t flags = format::attr_flag::user_attributes;
  if (attribute == "security.capability") flags |= format::attr_flag::capability;
  return flags;
}

}  // namespace

Result<Repair> Repairs::derive_key(const Object& inode, Ino ino, const txn::Part& part) {
  const Bytes& value = inode.keys.at(part.name);
  if (part.name.starts_with("n/")) return repair_entry(inode, ino, part);
  if (part.name.starts_with("m/")) return rebuild_map_block(inode, ino, part);
  if (is_marker_key(part.name)) return put(inode, part, Bytes(format::marker_value), "the only value there is set");
  if (part.name.starts_with("u/")) {
    if (value.empty()) return drop(inode, part, "removed: there is no value");
    if (value.front() == user_value_lead) return left("nothing tells what it was");
    return put(inode, part, user_value_lead + value.substr(1), "one byte corrected");
  }
  return drop(inode, part, "removed");
}

// ---- entries

Result<Repair> Repairs::repair_entry(const Object& directory, Ino ino, const txn::Part& part) {
  const auto parsed = format::parse_entry_key(part.name);
  if (!parsed || parsed->name == "." || parsed->name == "..")
    return drop(directory, part, "removed: no such name can be");
  const auto name = name_of(ino, parsed->name);
  return name.key == part.name ? entry_from_reverse_key(directory, ino, name) : move_entry(directory, part, name);
}

/// Under the hash of another name nobody finds it.
Result<Repair> Repairs::move_entry(const Object& directory, const txn::Part& part, const txn::Name& name) {
  const Bytes& stored = directory.keys.at(part.name);
  const bool readable = format::decode<format::EntryRecord>(stored).has_value();
  const auto value = readable ? stored : corrected(directory.as_read.object, part, stored).value_or(Bytes{});
  LCCFS_TRY(const auto both, objects_.read_keys(directory.as_read.object, {part.name, name.key}));
  if (!both || both->as_read.version != directory.as_read.version) return stepped(false, {});
  if (both->keys.contains(name.key)) return drop(directory, part, "removed: the name stands under its right key, too");
  if (value.empty()) return drop(directory, part, "removed: it leads nowhere");
  LCCFS_TRY(const bool moved, objects_.change(txn::move_key(directory.as_read, part.name, name.key, value)));
  return stepped(moved, "moved to its right key");
}

/// The one reverse key of that name says which inode; one that points back here is believed before others.
Result<Repair> Repairs::entry_from_reverse_key(const Object& directory, Ino ino, const txn::Name& name) {
  LCCFS_TRY(const auto with_reverse, objects_.read_inode(ino, "i/"));
  if (!with_reverse || with_reverse->as_read.version != directory.as_read.version) return stepped(false, {});
  std::vector<format::EntryRecord> pointing_back, others;
  bool unreadable = false;
  for (const auto& [key, value] : with_reverse->keys) {
    const auto reverse = format::parse_reverse_key(key);
    if (!reverse || reverse->name != name.name) continue;
    LCCFS_TRY(const auto target, objects_.read_inode(reverse->ino, "p/"));
    if (!target || target->is_dead()) continue;
    if (!target->attr()) {
      unreadable = true;
      continue;
    }
    auto& where = target->parents().contains(ino) ? pointing_back : others;
    where.push_back({reverse->ino, target->attr()->type, target->attr()->birth_token});
  }
  const auto& candidates = pointing_back.empty() ? others : pointing_back;
  if (unreadable) return left("the type of the inode that it may have named cannot be read");
  if (candidates.size() > 1) return left("it may have named one of several inodes");
  if (candidates.empty()) return drop(directory, {name.key, true}, "removed: nothing tells which inode it named");
  LCCFS_TRY(const bool done,
            objects_.change(txn::put_entry(directory.as_read, name, candidates.front(), std::nullopt)));
  return stepped(done, "written anew, for " + format::inode_object(candidates.front().ino));
}

// ---- the map

/// From the objects that are there. One that holds no byte is as good as none, and is found by itself.
Result<Repair> Repairs::rebuild_map_block(const Object& inode, Ino ino, const txn::Part& part) {
  const auto block = format::parse_map_key(part.name);
  if (!block) return drop(inode, part, "removed");
  const std::uint64_t first = *block * MapBlock::objects;
  std::uint64_t end = first + MapBlock::objects;
  if (const auto size_bytes = inode.number(xattr::size); size_bytes && !inode.xattrs.contains(xattr::lease)) {
    end = std::min(end, format::object_count(object_size_bytes(), *size_bytes));
  }
  std::vector<ObjectIndex> indexes;
  for (std::uint64_t index = first; index < end; ++index) indexes.push_back({index});
  LCCFS_TRY(const auto there, objects_.with_bytes(ino, indexes));
  if (there.empty()) return drop(inode, part, "removed: there are no data objects of it");
  MapBlock bits;
  for (const auto index : there) bits.may_exist.set(index.value - first);
  bits.believed_there = bits.may_exist;
  return put(inode, part, encode(bits), "made anew from the data objects that are there");
}

// ---- attributes

Result<Repair> Repairs::repair_flags(const Finding& finding) {
  LCCFS_TRY(const auto inode, objects_.read_keys(finding.object, {finding.part}));
  if (!inode || !inode->keys.contains(finding.part)) return settled();
  auto attr = inode->attr();
  if (!attr) return left("attr cannot be read");
  attr->flags |= flags_of(finding.part.substr(2));
  return put(*inode, {xattr::attr}, encode(*attr), "attr says that there are extended attributes");
}

}  // namespace lccfs::repair
