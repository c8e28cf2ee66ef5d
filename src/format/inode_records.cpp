// SPDX-License-Identifier: LGPL-2.1-or-later
// Records of inode objects.

#include "format/codec.h"
#include "format/layout.h"

namespace lccfs::format {

constexpr std::string_view entry_reference = "\1";
constexpr std::uint8_t version_with_mark = 2;      // of an entry
constexpr std::uint8_t version_with_old_name = 2;  // of a decision
constexpr std::uint8_t version_with_units = 2;     // of a map block
constexpr std::uint32_t known_flags =
    attr_flag::user_attributes | attr_flag::capability | attr_flag::access_acl | attr_flag::default_acl;
constexpr std::pair<std::uint32_t, const char*> own_flags[] = {{attr_flag::capability, attribute::capability},
                                                               {attr_flag::access_acl, attribute::access_acl},
                                                               {attr_flag::default_acl, attribute::default_acl}};

std::uint32_t own_flag_of(std::string_view attribute_name) {
  for (const auto& [flag, name] : own_flags) {
    if (attribute_name == name) return flag;
  }
  return 0;
}

std::uint32_t flags_of(std::string_view attribute_name) {
  return attr_flag::user_attributes | own_flag_of(attribute_name);
}

std::vector<std::string> attributes_of_flags(std::uint32_t flags) {
  std::vector<std::string> names;
  for (const auto& [flag, name] : own_flags) {
    if ((flags & flag) != 0) names.emplace_back(name);
  }
  return names;
}

void fields(auto& io, Is<TimeRecord> auto& record) {
  io.begin("time").version();
  io(record.time);
}
LCCFS_RECORD(TimeRecord)

void fields(auto& io, Is<AttrRecord> auto& attr) {
  io.begin("attr").version();
  io.enumeration(attr.type, FileType::block_device);
  io(attr.mode);
  io.require((attr.mode & ~07777U) == 0, "mode out of range");
  io(attr.uid, attr.gid, attr.rdev, attr.nlink, attr.birth, attr.birth_token, attr.flags);
  io.require((attr.flags & ~known_flags) == 0, "unknown flags");
}
LCCFS_RECORD(AttrRecord)

void fields(auto& io, Is<StateRecord> auto& state) {
  io.begin("state").version();
  io.enumeration(state.kind, StateRecord::Kind::dead);
  if (state.kind != StateRecord::Kind::sealed) return;
  io(state.token, state.parent);
  io.require(state.parent.value != 0, "no parent");
  io.string(state.name, name_limit_bytes);
  io.require(!state.name.empty(), "no name");
}
LCCFS_RECORD(StateRecord)

void fields(auto& io, Is<BackPointerRecord> auto& pointer) {
  io.begin("parent").version();
  io(pointer.parent);
  io.require(pointer.parent.value != 0, "no parent");
  io(pointer.token);
}
LCCFS_RECORD(BackPointerRecord)

/// The kind comes before the version: docs/FORMAT.md keeps it as the first byte of every entry there will ever be.
void fields(auto& io, Is<EntryRecord> auto& entry) {
  io.begin("entry").constant(entry_reference, "no such kind");
  const auto version = io.version(entry.mark ? version_with_mark : record_version, version_with_mark);
  io(entry.ino);
  io.require(entry.ino.value != 0, "no inode");
  io.enumeration(entry.type, FileType::block_device);
  io(entry.token);
  if (version != version_with_mark) return;
  auto& mark = io.present(entry.mark);
  io(mark.token, mark.to);
  io.require(mark.to.value != 0, "no directory");
}
LCCFS_RECORD(EntryRecord)

Bytes reverse_value(const EntryRecord& entry) { return entry.mark ? encode(entry) : Bytes(marker_value); }

std::optional<EntryRecord> marked_entry(std::string_view reverse_value, Ino ino) {
  if (reverse_value == marker_value) return std::nullopt;
  const auto entry = decode<EntryRecord>(reverse_value);
  return entry && entry->mark && entry->ino == ino ? std::optional(*entry) : std::nullopt;
}

void fields(auto& io, Is<MapBlock::PartlyThere> auto& part) { io(part.object, part.units); }

/// Each object once, in order, and none that the bits alone could say.
static bool is_canonical(const MapBlock& block) {
  const auto& parts = block.partly_there;
  const auto is_partly = [&block](const MapBlock::PartlyThere& part) {
    return part.object < MapBlock::objects && block.believed_there[part.object] && part.units != 0 &&
           part.units != all_units;
  };
  return !parts.empty() && std::ranges::all_of(parts, is_partly) &&
         std::ranges::adjacent_find(parts, std::ranges::greater_equal(), &MapBlock::PartlyThere::object) == parts.end();
}

void fields(auto& io, Is<MapBlock> auto& block) {
  const auto version =
      io.begin("map block")
          .version(block.partly_there.empty() ? record_version : version_with_units, version_with_units);
  io.bits(block.may_exist);
  io.bits(block.believed_there);
  io.require((block.believed_there & ~block.may_exist).none(), "believed there, but may not exist");
  if (version != version_with_units) return;
  io.list(block.partly_there, MapBlock::objects, "more than there are objects");
  io.require(is_canonical(block), "units of no such object");
}
LCCFS_RECORD(MapBlock)

void fields(auto& io, Is<DecisionRecord> auto& decision) {
  using Kind = DecisionRecord::Kind;
  const auto version =
      io.begin("decision")
          .version(decision.kind == Kind::committed ? version_with_old_name : record_version, version_with_old_name);
  io.enumeration(decision.kind, Kind::committed);
  io.require((version == version_with_old_name) == (decision.kind == Kind::committed), "no old name");
  if (decision.kind != Kind::committed) return;
  io(decision.from);
  io.require(decision.from.value != 0, "no directory");
  io.string(decision.name, name_limit_bytes);
  io.require(!decision.name.empty(), "no name");
}
LCCFS_RECORD(DecisionRecord)

void fields(auto& io, Is<LockStateRecord> auto& state) {
  io.begin("lock state").version();
  io.enumeration(state.kind, LockStateRecord::Kind::shared);
  io(state.token);
  io.require(state.token.instance.value != 0, "no instance");
}
LCCFS_RECORD(LockStateRecord)

void fields(auto& io, Is<DirectoryLeaseRecord> auto& lease) {
  io.begin("directory lease").version();
  io(lease.token);
  io.require(lease.token.instance.value != 0, "no instance");
}
LCCFS_RECORD(DirectoryLeaseRecord)

void fields(auto& io, Is<LocksRecord::Lock> auto& lock) {
  io(lock.is_flock, lock.is_exclusive, lock.first, lock.last);
  io.require(lock.first <= lock.last, "a lock of no bytes");
}

void fields(auto& io, Is<LocksRecord> auto& record) {
  io.begin("locks").version();
  io(record.number);
  io.list(record.locks, LocksRecord::most, "more locks than there may be");
  io.require(!record.locks.empty(), "no locks");
  const auto out_of_order = std::ranges::adjacent_find(record.locks, std::ranges::greater_equal());
  io.require(out_of_order == record.locks.end(), "locks out of order");
}
LCCFS_RECORD(LocksRecord)

void fields(auto& io, Is<TakenRecord> auto& taken) {
  io.begin("taken").version();
  io(taken.token);
  io.require(taken.token.instance.value != 0, "no instance");
}
LCCFS_RECORD(TakenRecord)

}  // namespace lccfs::format
