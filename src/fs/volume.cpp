// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Making a volume. Every step creates an object exclusively, so nothing that is there is ever changed.
//
//  mkfs | object  | step                                | stop here leaves
//  1    | Alloc   | [make alloc] create: next = 2       | a leftover that the next mkfs uses
//  2    | Inode.1 | [make root] create: the root        | the same
//  3    | Super   | [make super] create                 | COMMIT: a volume
#include "lccfs/volume.h"

#include <algorithm>
#include <bit>

#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

#include "base/text.h"
#include "format/features.h"
#include "format/object_names.h"
#include "format/records.h"
#include "fs/clients.h"
#include "objects/object.h"
#include "objects/super.h"
#include "reclaim/collector.h"
#include "txn/volume_txn.h"

namespace lccfs {

namespace xattr = format::xattr;

namespace {

std::unexpected<Error> refused(const std::string& why) {
  return failure(ErrorCode::exists, why + ": nothing was changed");
}

format::VolumeUuid random_uuid() {
  format::VolumeUuid uuid;
  std::ranges::copy(boost::uuids::random_generator()(), uuid.begin());
  return uuid;
}

std::string text_of(const format::VolumeUuid& uuid) {
  boost::uuids::uuid same;
  std::ranges::copy(uuid, same.begin());
  return to_string(same);
}

std::string quoted(const std::string& name) { return std::string("\"").append(printable(name)).append("\""); }

/// What a mkfs that was cut short leaves.
bool may_be_leftover(const format::ObjectName& name) {
  if (std::holds_alternative<format::AllocName>(name)) return true;
  const auto* inode = std::get_if<format::InodeName>(&name);
  return inode != nullptr && inode->ino == root_ino;
}

/// `where` the store looks now: the pools that it has been told of.
Result<> check_empty(ObjectStore& store, const std::string& where, bool with_data) {
  return objects::for_each_object(store, [&where, with_data](const std::string& name) -> Result<> {
    const auto known = format::parse_object_name(name);
    if (with_data && known && std::holds_alternative<format::DataName>(*known)) return {};
    const auto place = where + " (" + quoted(name) + ")";
    if (!known) return refused("there are objects of another program " + place);
    if (!may_be_leftover(*known)) return refused("there are objects of a volume " + place + ", and no Super");
    return {};
  });
}

/// Also one whose Super cannot be read: nothing of it is made anew.
Result<> check_no_volume(ObjectStore& store) {
  const auto super = store.query({.object = format::super_object});
  if (super) return refused("there is a volume here already");
  if (super.error().code != ErrorCode::not_found) return std::unexpected(super.error());
  return {};
}

Result<MetaSnapshot> read_xattrs(ObjectStore& store, const char* object) {
  return store.query({.object = object, .xattrs = true});
}

/// false: the object is there already.
Result<bool> made(ObjectStore& store, const MetaTxn& txn) {
  const auto applied = store.apply(txn);
  if (applied || applied.error().code == ErrorCode::exists) return applied.has_value();
  return std::unexpected(applied.error());
}

/// A volume that another mkfs finished meanwhile may have handed out numbers already: then it is not ours to use.
Result<> make_or_find_alloc(ObjectStore& store) {
  LCCFS_TRY(const bool is_new, made(store, txn::make_alloc()));
  if (is_new) return {};
  LCCFS_TRY(auto found, read_xattrs(store, format::alloc_object));
  if (found.xattrs[xattr::next] == encode(format::NumberRecord{format::first_number})) return {};
  return refused("there is an object Alloc here that has handed out numbers");
}

Result<> make_or_find_root(ObjectStore& store, Clock& clock) {
  LCCFS_TRY(const bool is_new, made(store, txn::make_root(clock.wall_time())));
  if (is_new) return {};
  const auto object = format::inode_object(root_ino);
  LCCFS_TRY(auto found, store.query({.object = object, .xattrs = true, .ranges = {{"", "", 1}}}));
  const auto attr = format::decode<format::AttrRecord>(found.xattrs[xattr::attr]);
  if (attr && attr->type == FileType::directory && found.ranges.front().entries.empty()) return {};
  return refused("there is an object " + object + " here that is no empty root directory");
}

Result<> make_super(ObjectStore& store, const format::SuperRecord& super) {
  LCCFS_TRY(const bool is_new, made(store, txn::make_super(super)));
  if (is_new) return {};
  LCCFS_TRY(auto found, read_xattrs(store, format::super_object));
  if (found.xattrs[xattr::super] == encode(super)) return {};  // ours: the store has run the step twice
  return refused("another mkfs has just made a volume here");
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

Result<std::string> make_volume(ObjectStore& store, Clock& clock, const MakeVolumeOptions& options) {
  LCCFS_CHECK(check_options(options));
  LCCFS_CHECK(check_no_volume(store));
  LCCFS_CHECK(check_empty(store, "here", options.to_be_loaded));
  if (!options.data_pool.empty()) {
    LCCFS_CHECK(store.use_data_pool(options.data_pool));
    LCCFS_CHECK(check_empty(store, "in the data pool " + options.data_pool, options.to_be_loaded));
  }

  format::SuperRecord super;
  super.uuid = random_uuid();
  super.label = options.label;
  super.object_size_bytes = options.object_size_bytes;
  super.data_pool = options.data_pool;
  super.grace_seconds = options.grace_seconds;
  super.birth = clock.wall_time();
  format::set_features(super, format::missing_features(super));
  if (options.to_be_loaded) super.incompat |= format::being_loaded;

  LCCFS_CHECK(make_or_find_alloc(store));
  LCCFS_CHECK(make_or_find_root(store, clock));
  LCCFS_CHECK(make_super(store, super));
  return text_of(super.uuid);
}

Result<VolumeInfo> describe_volume(ObjectStore& store) {
  LCCFS_TRY(const auto found, objects::read_super(objects::reader_of(store), objects::Instances::all));
  const auto& super = found.record;
  LCCFS_CHECK(objects::use_data_pool(store, super));
  LCCFS_TRY(const std::uint64_t next, objects::read_next_number(store));

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
  info.numbers_used = next - format::first_number;
  LCCFS_TRY(info.capacity, store.capacity());
  LCCFS_TRY(info.instances, describe_instances(store, found.ranges.front()));
  const auto backlog = reclaim::measure_backlog(store);
  if (!backlog && backlog.error().code == ErrorCode::timed_out) {
    info.backlog_not_known = backlog.error().context;
    return info;
  }
  if (!backlog) return std::unexpected(backlog.error());
  info.backlog = {backlog->items, std::nullopt, backlog->inodes, backlog->bytes_waiting, backlog->is_more};
  if (backlog->oldest) info.backlog.oldest_seconds = backlog->oldest->seconds;
  return info;
}

}  // namespace lccfs
