// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Making a volume. Every step creates an object exclusively, so nothing that is there is ever changed.
//
//  mkfs | object  | step              | stop here leaves
//  1    | Alloc   | create: next = 2  | a leftover that the next mkfs uses
//  2    | Inode.1 | create: the root  | the same
//  3    | Super   | create: **commit** | a volume
#include "lccfs/volume.h"

#include <bit>
#include <random>

#include "base/text.h"
#include "format/object_names.h"
#include "format/records.h"
#include "instance/presence.h"
#include "objects/super.h"
#include "reclaim/collector.h"
#include "txn/volume_txn.h"

namespace lccfs {

namespace xattr = format::xattr;

namespace {

Error refused(std::string why) { return {ErrorCode::exists, std::move(why) + ": nothing was changed"}; }

format::VolumeUuid random_uuid() {
  format::VolumeUuid uuid;
  std::random_device source;
  std::uniform_int_distribution<unsigned> any_byte(0, 255);
  for (auto& byte : uuid) byte = static_cast<std::uint8_t>(any_byte(source));
  uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0F) | 0x40);  // RFC 4122: version 4,
  uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3F) | 0x80);  // variant 1
  return uuid;
}

std::string quoted(const std::string& name) {
  std::string text = "\"";
  text += printable(name);
  text += '"';
  return text;
}

/// What a mkfs that was cut short leaves.
bool may_be_leftover(const format::ObjectName& name) {
  if (std::holds_alternative<format::AllocName>(name)) return true;
  const auto* inode = std::get_if<format::InodeName>(&name);
  return inode != nullptr && inode->ino == root_ino;
}

/// `where` the store looks now: the pools that it has been told of.
Result<> check_empty(ObjectStore& store, const std::string& where) {
  std::string cursor;
  do {
    LCCFS_TRY(const ListPage page, store.list(cursor));
    for (const std::string& name : page.names) {
      const auto known = format::parse_object_name(name);
      if (!known)
        return std::unexpected(refused("there are objects of another program " + where + " (" + quoted(name) + ")"));
      if (!may_be_leftover(*known))
        return std::unexpected(
            refused("there are objects of a volume " + where + " (" + quoted(name) + "), and no Super"));
    }
    cursor = page.next_cursor;
  } while (!cursor.empty());
  return {};
}

/// Also one whose Super cannot be read: nothing of it is made anew.
Result<> check_no_volume(ObjectStore& store) {
  const auto super = store.query({.object = format::super_object, .ranges = {}, .keys = {}});
  if (super) return std::unexpected(refused("there is a volume here already"));
  if (super.error().code != ErrorCode::not_found) return std::unexpected(super.error());
  return {};
}

Result<MetaSnapshot> read_xattrs(ObjectStore& store, const char* object) {
  return store.query({.object = object, .xattrs = true, .ranges = {}, .keys = {}});
}

/// A volume that another mkfs finished meanwhile may have handed out numbers already: then it is not ours to use.
Result<> make_or_find_alloc(ObjectStore& store) {
  const auto made = store.apply(txn::make_alloc());
  if (made || made.error().code != ErrorCode::exists) return made ? Result<>{} : std::unexpected(made.error());
  LCCFS_TRY(auto found, read_xattrs(store, format::alloc_object));
  if (found.xattrs[xattr::next] == encode(format::NumberRecord{format::first_number})) return {};
  return std::unexpected(refused("there is an object Alloc here that has handed out numbers"));
}

Result<> make_or_find_root(ObjectStore& store, Clock& clock) {
  const auto made = store.apply(txn::make_root(clock.wall_time()));
  if (made || made.error().code != ErrorCode::exists) return made ? Result<>{} : std::unexpected(made.error());
  const auto object = format::inode_object(root_ino);
  LCCFS_TRY(auto found, store.query({.object = object, .xattrs = true, .ranges = {{"", "", 1}}, .keys = {}}));
  const auto attr = format::decode<format::AttrRecord>(found.xattrs[xattr::attr]);
  if (attr && attr->type == FileType::directory && found.ranges.front().entries.empty()) return {};
  return std::unexpected(refused("there is an object " + object + " here that is no empty root directory"));
}

Result<> make_super(ObjectStore& store, const format::SuperRecord& super) {
  const auto made = store.apply(txn::make_super(super));
  if (made || made.error().code != ErrorCode::exists) return made ? Result<>{} : std::unexpected(made.error());
  LCCFS_TRY(auto found, read_xattrs(store, format::super_object));
  if (found.xattrs[xattr::super] == encode(super)) return {};  // ours: the store has run the step twice
  return std::unexpected(refused("another mkfs has just made a volume here"));
}

std::string text_of(const format::VolumeUuid& uuid) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += {digits[uuid[i] >> 4], digits[uuid[i] & 15]};
  }
  return text;
}

const char* text_of(format::InstanceRecord::State state) {
  switch (state) {
    case format::InstanceRecord::State::live:
      return "live";
    case format::InstanceRecord::State::fenced:
      return "fenced";
    case format::InstanceRecord::State::ended:
      return "ended";
  }
  return "?";
}

Result<InstanceInfo> describe_instance(ObjectStore& store, const std::string& key, const Bytes& value) {
  const auto id = format::parse_instance_key(key);
  const auto record = format::decode<format::InstanceRecord>(value);
  if (!id)
    return std::unexpected(
        format::damage_of("Super: " + key, {ErrorCode::corrupt, "no instance's key", Outcome::definite}));
  if (!record) return std::unexpected(format::damage_of("Super: " + key, record.error()));
  InstanceInfo info;
  info.number = id->value;
  info.host = record->host;
  info.version = record->version;
  info.mount_id = record->mount_id;
  info.state = text_of(record->state);
  info.pid = record->pid;
  info.since_seconds = record->since.seconds;
  if (record->state != format::InstanceRecord::State::live) return info;
  const auto presence = presence_of(store, system_processes(), *id, *record);
  if (presence) info.presence = *presence;
  return info;
}

Result<BacklogInfo> describe_backlog(ObjectStore& store) {
  LCCFS_TRY(const auto backlog, reclaim::measure_backlog(store));
  BacklogInfo info;
  info.items = backlog.items;
  if (backlog.oldest) info.oldest_seconds = backlog.oldest->seconds;
  info.inodes = backlog.inodes;
  info.bytes = backlog.bytes_waiting;
  return info;
}

}  // namespace

Result<> check_options(const MakeVolumeOptions& options) {
  const auto size_bytes = options.object_size_bytes;
  if (!std::has_single_bit(size_bytes) || size_bytes < format::object_size_min_bytes ||
      size_bytes > format::object_size_max_bytes) {
    return failure(ErrorCode::invalid, "the object size must be a power of two from 64 KiB to 32 MiB");
  }
  if (options.label.size() > 255) return failure(ErrorCode::invalid, "the label is longer than 255 bytes");
  return {};
}

Result<> make_volume(ObjectStore& store, Clock& clock, const MakeVolumeOptions& options) {
  LCCFS_CHECK(check_options(options));
  LCCFS_CHECK(check_no_volume(store));
  LCCFS_CHECK(check_empty(store, "here"));
  if (!options.data_pool.empty()) {
    LCCFS_CHECK(store.use_data_pool(options.data_pool));
    LCCFS_CHECK(check_empty(store, "in the data pool " + options.data_pool));
  }

  format::SuperRecord super;
  super.uuid = random_uuid();
  super.label = options.label;
  super.object_size_bytes = options.object_size_bytes;
  super.data_pool = options.data_pool;
  super.grace_seconds = options.grace_seconds;
  super.birth = clock.wall_time();

  LCCFS_CHECK(make_or_find_alloc(store));
  LCCFS_CHECK(make_or_find_root(store, clock));
  return make_super(store, super);
}

Result<VolumeInfo> describe_volume(ObjectStore& store) {
  LCCFS_TRY(const auto found, objects::read_super(objects::reader_of(store), objects::Instances::all));
  const auto& super = found.record;
  if (!super.data_pool.empty()) LCCFS_CHECK(store.use_data_pool(super.data_pool));
  LCCFS_TRY(auto alloc, read_xattrs(store, format::alloc_object));
  const auto next = format::decode_next_number(alloc.xattrs[xattr::next]);
  if (!next) return std::unexpected(format::damage_of("Alloc: next", next.error()));

  VolumeInfo info;
  info.uuid = text_of(super.uuid);
  info.label = super.label;
  info.data_pool = super.data_pool;
  info.format_version = super.version;
  info.compat = super.compat;
  info.ro_compat = super.ro_compat;
  info.incompat = super.incompat;
  info.object_size_bytes = super.object_size_bytes;
  info.grace_seconds = super.grace_seconds;
  info.birth_seconds = super.birth.seconds;
  info.numbers_used = *next - format::first_number;
  LCCFS_TRY(info.capacity, store.capacity());
  for (const auto& [key, value] : found.ranges.front().entries) {
    LCCFS_TRY(auto instance, describe_instance(store, key, value));
    info.instances.push_back(std::move(instance));
  }
  LCCFS_TRY(info.backlog, describe_backlog(store));
  return info;
}

}  // namespace lccfs
