// SPDX-License-Identifier: LGPL-2.1-or-later
// Parts of objects that are missing, cannot be read, or are unknown to the format.
#include <algorithm>

#include "format/layout.h"
#include "repair/one_byte.h"
#include "repair/repairs.h"

namespace lccfs::repair {

using check::Kind;
using format::MapBlock;
using format::NumberRecord;
using format::TimeRecord;
namespace xattr = format::xattr;

namespace {

bool is_time(const std::string& name) {
  return name == xattr::atime || name == xattr::mtime || name == xattr::ctime || name == xattr::wtime;
}

/// Found for its key, as a value of a newer version is refused before.
bool is_newer_entry(const Object& object, const txn::Part& part) {
  return part.is_key && part.name.starts_with("n/") && object.is(FileType::directory) &&
         object.is_newer<format::EntryRecord>(part);
}

}  // namespace

bool Repairs::is_lost_back_pointer(const Finding& finding) {
  if (finding.kind != Kind::corrupt && finding.kind != Kind::unknown_part) return false;
  if (finding.is_key) return finding.part.starts_with("p/") && !format::parse_back_pointer_key(finding.part);
  return finding.part == xattr::parent && !corrected(finding.object, {finding.part}, finding.seen);
}

/// Of a symlink the payload is its target, and the size follows it; nothing else has one.
Result<Repair> Repairs::repair_payload(const Object& object, const Finding& finding) {
  if (check::as_seen(object.payload) != finding.seen) return settled();
  if (object.is(FileType::symlink)) {
    const std::uint64_t length = object.payload.size();
    if (object.number(xattr::size) == length) return settled();
    if (length == 0 || length > format::symlink_limit_bytes) return left("nothing tells what the target was");
    return put(object, {xattr::size}, encode(NumberRecord{length}), "size is set to the length of the target");
  }
  return step(txn::drop_payload(object.as_read()), "removed");
}

Result<Repair> Repairs::repair_part(const Finding& finding) {
  const txn::Part part{finding.part, finding.is_key};
  const auto keys = part.is_key ? std::vector{part.name} : std::vector<std::string>{};
  LCCFS_TRY(const auto object, objects_.read_keys(finding.object, keys));
  if (!object) return settled();
  if (part.name.empty()) return repair_payload(*object, finding);
  const Bytes* value = object->value_of(part);
  if (finding.kind == Kind::missing_part && value != nullptr) return settled();
  if (finding.kind != Kind::missing_part && (value == nullptr || check::as_seen(*value) != finding.seen))
    return settled();
  if (is_newer_entry(*object, part)) return move_newer_entry(*object, finding.ino, part);
  const bool is_name = part.is_key && format::parse_entry_key(part.name) && object->is(FileType::directory);
  if (finding.kind == Kind::unknown_part && !is_name) return drop(*object, part, "removed");
  if (value != nullptr) {
    if (const auto right = corrected(finding.object, part, *value))
      return put(*object, part, *right, "one byte corrected");
  }
  if (comes_first(finding)) return derive_volume_part(*object, part);
  return part.is_key ? derive_key(*object, finding.ino, part) : derive_xattr(*object, finding.ino, part.name);
}

Result<Repair> Repairs::derive_xattr(const Object& inode, Ino ino, const std::string& name) {
  const txn::Part part{name};
  if (name == xattr::state) {
    return put(inode, part, encode(format::StateRecord{}), "taken for live: the collector removes what has no name");
  }
  if (name == xattr::parent) return drop(inode, part, "removed: nothing tells where it led");
  if (name == xattr::size && inode.is(FileType::symlink) && !inode.payload.empty()) {
    return put(inode, part, encode(NumberRecord{inode.payload.size()}), "set to the length of the target");
  }
  if (name == xattr::nsub)
    return count_subdirectories({.kind = Kind::subdirectories, .object = inode.name, .text = {}, .ino = ino});
  if (is_time(name)) return derive_time(inode, part);
  if (name == xattr::lease && inode.is(FileType::directory)) {
    return drop(inode, part, "removed: who needs it takes it anew");
  }
  if (name == xattr::behind) return drop(inode, part, "removed: who held it is gone");
  if (name == xattr::lease) return void_lease(inode, ino);
  if (name == xattr::locks) return drop(inode, part, "removed: those who had locks are gone");
  if (name == xattr::taken) return drop(inode, part, "removed: cached pages are read anew");
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
    const auto other = inode.find<TimeRecord>(name);
    if (other) latest = std::max(latest.value_or(other->time), other->time);
  }
  if (!latest && inode.attr()) latest = inode.attr()->birth;
  if (!latest) return left("no other time tells what it was");
  return put(inode, part, encode(TimeRecord{*latest}), "set to the latest of the other times");
}

/// The holder is expired. What it left past the size is cut, as a take-over would have done.
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
  return drop(inode, {xattr::lease}, "removed: its holder is expired");
}

// ---- keys of inodes

namespace {

constexpr char user_value_lead = 1;

bool is_marker_key(const std::string& key) {
  return format::parse_back_pointer_key(key) || format::parse_detached_key(key);
}

}  // namespace

Result<Repair> Repairs::derive_key(const Object& inode, Ino ino, const txn::Part& part) {
  const Bytes& value = inode.keys.at(part.name);
  if (part.name.starts_with("n/")) return repair_entry(inode, ino, part);
  if (part.name.starts_with("m/")) return rebuild_map_block(inode, ino, part);
  if (part.name.starts_with("x/")) return derive_decision(inode, ino, part);
  if (format::parse_reverse_key(part.name)) return derive_reverse_key(inode, ino, part);
  if (is_marker_key(part.name)) return put(inode, part, Bytes(format::marker_value), "the only value there is set");
  if (part.name.starts_with("u/")) {
    if (value.empty()) return drop(inode, part, "removed: there is no value");
    if (value.front() == user_value_lead) return left("nothing tells what it was");
    return put(inode, part, user_value_lead + value.substr(1), "one byte corrected");
  }
  return drop(inode, part, "removed");
}

/// As its entry has it.
Result<Repair> Repairs::derive_reverse_key(const Object& directory, Ino ino, const txn::Part& part) {
  const auto reverse = *format::parse_reverse_key(part.name);
  const auto name = name_of(ino, reverse.name);
  LCCFS_TRY(const auto with_entry, objects_.read_keys(directory.name, {name.key}));
  if (!with_entry || with_entry->version != directory.version) return changed_meanwhile();
  const auto entry = with_entry->entry(name.key);
  if (entry && entry->record.ino == reverse.ino) return restore_entry(directory, name, entry->record, "set anew");
  return put(directory, part, Bytes(format::marker_value), "set, without an entry");
}

// ---- entries

Result<Repair> Repairs::repair_entry(const Object& directory, Ino ino, const txn::Part& part) {
  const auto parsed = format::parse_entry_key(part.name);
  if (!parsed || parsed->name == "." || parsed->name == "..")
    return drop(directory, part, "removed: no such name can be");
  const auto name = name_of(ino, parsed->name);
  return name.key == part.name ? entry_from_reverse_key(directory, ino, name) : move_entry(directory, part, name);
}

/// Of the two parts of such a key either may be the wrong one. A name of the inode that has this hash, and of which the
/// reverse key is there, is proven by both.
Result<txn::Name> Repairs::name_of_the_hash(const std::string& key, const Bytes& value, const txn::Name& name) {
  const auto hash = format::parse_entry_key(key)->hash;
  const auto entry = format::decode<format::EntryRecord>(value);
  if (!entry) return name;
  LCCFS_TRY(const auto with_reverse, objects_.read_inode(name.directory, format::reverse_key(entry->ino, "")));
  if (!with_reverse) return name;
  for (const auto& [reverse_key, marker] : with_reverse->keys) {
    const auto reverse = format::parse_reverse_key(reverse_key);
    if (reverse && format::name_hash(objects_.uuid(), reverse->name) == hash)
      return name_of(name.directory, reverse->name);
  }
  return name;
}

/// Under the hash of another name no lookup finds it.
Result<Repair> Repairs::move_entry(const Object& directory, const txn::Part& part, const txn::Name& stored_name) {
  const Bytes& stored = directory.keys.at(part.name);
  const bool readable = format::decode<format::EntryRecord>(stored).has_value();
  const auto value = readable ? stored : corrected(directory.name, part, stored).value_or(Bytes{});
  LCCFS_TRY(const auto name, name_of_the_hash(part.name, value, stored_name));
  LCCFS_TRY(const auto both, objects_.read_keys(directory.name, {part.name, name.key}));
  if (!both || both->version != directory.version) return changed_meanwhile();
  if (both->keys.contains(name.key)) return drop(directory, part, "removed: the name stands under its right key, too");
  if (value.empty()) return drop(directory, part, "removed: it leads nowhere");
  return step(txn::move_key(directory.as_read(), part.name, name.key, value), "moved to its right key");
}

/// It tells no inode. A reverse key of the name, or of another one that has this hash, proves what it was.
Result<Repair> Repairs::move_newer_entry(const Object& directory, Ino ino, const txn::Part& part) {
  const auto stored = format::parse_entry_key(part.name);
  if (!stored) return left_to_newer("it");
  std::optional<std::string> proven;
  LCCFS_CHECK(objects_.for_each_key(directory.name, "i/", [&](const std::string& key, const Bytes&) -> Result<> {
    const auto reverse = format::parse_reverse_key(key);
    if (!reverse) return {};
    const bool has_hash = format::name_hash(objects_.uuid(), reverse->name) == stored->hash;
    if (has_hash || (!proven && reverse->name == stored->name)) proven = reverse->name;
    return {};
  }));
  if (!proven) return left_to_newer("it");
  const auto name = name_of(ino, *proven);
  LCCFS_TRY(const auto both, objects_.read_keys(directory.name, {part.name, name.key}));
  if (!both || both->version != directory.version) return changed_meanwhile();
  if (both->keys.contains(name.key)) return left_to_newer("it");
  return step(txn::move_key(directory.as_read(), part.name, name.key, directory.keys.at(part.name)),
              "moved to its right key");
}

Result<> Repairs::keep_those_that_miss_a_name(std::vector<format::EntryRecord>& candidates) {
  std::vector<format::EntryRecord> missing_one;
  for (const auto& candidate : candidates) {
    LCCFS_TRY(const auto inode, objects_.read_inode(candidate.ino));
    if (!inode || !inode->attr()) continue;
    LCCFS_TRY(const auto names, standing_names(*inode, candidate.ino));
    if (names.size() < inode->attr()->nlink) missing_one.push_back(candidate);
  }
  if (!missing_one.empty()) candidates = std::move(missing_one);
  return {};
}

/// Those of a newer version may be its own.
Result<bool> Repairs::has_all_names_with_newer_ones(Ino ino) {
  LCCFS_TRY(const auto inode, objects_.read_inode(ino));
  if (!inode || !inode->attr()) return false;
  LCCFS_TRY(const auto newer, count_newer_names(*inode, ino));
  if (newer == 0) return false;
  LCCFS_TRY(const auto names, standing_names(*inode, ino));
  return names.size() + newer >= inode->attr()->nlink;
}

/// The one reverse key of that name says which inode; one that points back here is believed before others, and of
/// several one that has not all its names.
Result<Repair> Repairs::entry_from_reverse_key(const Object& directory, Ino ino, const txn::Name& name) {
  std::vector<std::pair<Ino, Bytes>> claims;
  LCCFS_CHECK(objects_.for_each_key(directory.name, "i/", [&](const std::string& key, const Bytes& value) -> Result<> {
    const auto reverse = format::parse_reverse_key(key);
    if (reverse && reverse->name == name.name) claims.emplace_back(reverse->ino, value);
    return {};
  }));
  std::vector<format::EntryRecord> pointing_back, others;
  bool unreadable = false;
  for (const auto& [claimant, value] : claims) {
    LCCFS_TRY(const auto target, objects_.read_inode(claimant));
    if (!target || target->is_dead()) continue;
    if (!target->attr()) {
      unreadable = true;
      continue;
    }
    auto& where = target->parents().contains(ino) ? pointing_back : others;
    where.push_back(entry_of(value, claimant, *target->attr()));
  }
  auto& candidates = pointing_back.empty() ? others : pointing_back;
  if (candidates.size() > 1) LCCFS_CHECK(keep_those_that_miss_a_name(candidates));
  if (unreadable) return left("the type of the inode that it may have named cannot be read");
  if (candidates.size() > 1) return left("it may have named one of several inodes");
  if (candidates.empty()) return drop(directory, {name.key, true}, "removed: nothing tells which inode it named");
  LCCFS_TRY(const bool is_named, has_all_names_with_newer_ones(candidates.front().ino));
  if (is_named) return left_to_newer(may_be_its_name);
  return restore_entry(directory, name, candidates.front(),
                       "written anew, for " + format::inode_object(candidates.front().ino));
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
  attr->flags |= format::flags_of(finding.part.substr(2));
  return put(*inode, {xattr::attr}, encode(*attr), "attr says that there are extended attributes");
}

}  // namespace lccfs::repair
