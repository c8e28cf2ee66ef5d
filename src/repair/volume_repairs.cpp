// SPDX-License-Identifier: LGPL-2.1-or-later
#include "repair/volume_repairs.h"

#include <algorithm>
#include <variant>

#include "repair/outcome.h"
#include "repair/record_parts.h"
#include "repair/users.h"
#include "txn/volume_txn.h"

namespace lccfs::repair {

using check::Finding;
using Kind = Finding::Kind;
using format::NumberRecord;
namespace xattr = format::xattr;

namespace {

constexpr const char* still_there = "its client is there: unmount it first";
constexpr std::uint64_t margin = std::uint64_t{1} << 20;  // instances that made nothing are known by their tokens alone

const std::string& root_object() {
  static const std::string name = format::inode_object(root_ino);
  return name;
}

Bytes ended_record() {
  format::InstanceRecord record;
  record.state = format::InstanceRecord::State::ended;
  return encode(record);
}

std::uint64_t number_in(const std::string& object) {
  const auto parsed = format::parse_object_name(object);
  if (!parsed) return 0;
  if (const auto* session = std::get_if<format::SessionName>(&*parsed)) return session->instance.value;
  if (const auto* inode = std::get_if<format::InodeName>(&*parsed)) return inode->ino.value;
  if (const auto* data = std::get_if<format::DataName>(&*parsed)) return data->ino.value;
  return 0;
}

}  // namespace

bool VolumeRepairs::takes(const Finding& finding) {
  switch (finding.kind) {
    case Kind::unknown_object:  // whatever its name begins with
      return false;
    case Kind::number_not_given:
    case Kind::fences_behind:
    case Kind::missing_object:
    case Kind::stray_session:
      return true;
    default:
      return finding.object == format::super_object || finding.object == format::alloc_object ||
             finding.object.starts_with("Session.");
  }
}

Result<Repair> VolumeRepairs::repair(const Finding& finding) {
  switch (finding.kind) {
    case Kind::number_not_given:
      if (finding.number >= format::numbers_end) return left("no number is above that one");
      return raise_number(format::alloc_object, xattr::next, finding.number + margin);
    case Kind::fences_behind:
      return raise_number(format::super_object, xattr::fences, finding.number);
    case Kind::missing_object:
      return make_missing(finding.object);
    case Kind::stray_session:
      return add_ended_record(InstanceId{finding.number});
    case Kind::unsupported:
      return left("use a newer lccfs-fsck");
    case Kind::corrupt:
    case Kind::missing_part:
    case Kind::unknown_part:
      return repair_part(finding);
    default:
      return left("there is no repair for this");
  }
}

Result<Repair> VolumeRepairs::make_missing(const std::string& object) {
  if (object == format::alloc_object) {
    LCCFS_TRY(const auto highest, highest_number());
    LCCFS_TRY(const bool made, objects_.change(txn::make_alloc_from(highest + margin)));
    return stepped(made, "made anew, above all numbers in use");
  }
  if (object == root_object()) {
    LCCFS_TRY(const bool made, objects_.change(txn::make_root(clock_.wall_time())));
    return stepped(made, "made anew, without a name in it");
  }
  return left("nothing tells what was in it");
}

Result<Repair> VolumeRepairs::raise_number(const std::string& object, const char* name, std::uint64_t least) {
  LCCFS_TRY(const auto found, objects_.read_keys(object, {}));
  if (!found) return left(object + " is not there");
  const auto stored = found->number(name);
  if (stored && *stored >= least) return settled();
  LCCFS_TRY(const bool put, objects_.change(txn::put_part(found->as_read, {name}, encode(NumberRecord{least}))));
  return stepped(put, std::string(name) + " is now " + std::to_string(least));
}

Result<Repair> VolumeRepairs::repair_part(const Finding& finding) {
  const txn::Part part{finding.part, finding.is_key};
  LCCFS_TRY(const auto object,
            objects_.read_keys(finding.object, part.is_key ? std::vector{part.name} : std::vector<std::string>{}));
  if (!object) return settled();
  if (part.name.empty()) {
    if (object->payload != finding.seen) return settled();
    LCCFS_TRY(const bool dropped, objects_.change(txn::drop_payload(object->as_read)));
    return stepped(dropped, "removed");
  }
  const Bytes* value = object->value_of(part);
  if (finding.kind == Kind::missing_part) return value == nullptr ? derive(*object, part) : settled();
  if (value == nullptr || *value != finding.seen) return settled();
  if (finding.kind == Kind::unknown_part) {
    LCCFS_TRY(const bool dropped, objects_.change(txn::drop_part(object->as_read, part)));
    return stepped(dropped, "removed");
  }
  if (const auto right = corrected(finding.object, part, finding.seen)) {
    LCCFS_TRY(const bool put, objects_.change(txn::put_part(object->as_read, part, *right)));
    return stepped(put, "one byte corrected");
  }
  return derive(*object, part);
}

Result<Repair> VolumeRepairs::derive(const Object& object, const txn::Part& part) {
  const auto put = [&](const Bytes& value, const char* what) -> Result<Repair> {
    LCCFS_TRY(const bool done, objects_.change(txn::put_part(object.as_read, part, value)));
    return stepped(done, what);
  };
  if (const auto id = part.is_key ? format::parse_instance_key(part.name) : std::nullopt) {
    LCCFS_TRY(const bool there, somebody_watches_session(objects_.store(), *id));
    if (there) return left(still_there);
    return put(ended_record(), "the instance is taken for ended");
  }
  if (part.is_key) {
    LCCFS_TRY(const bool dropped, objects_.change(txn::drop_part(object.as_read, part)));
    return stepped(dropped, "removed: what it led to is looked for by itself");
  }
  if (part.name == xattr::fences) {
    LCCFS_TRY(const auto highest, highest_fence());
    return put(encode(NumberRecord{highest}), "set to the highest number in use");
  }
  if (part.name == xattr::next) {
    LCCFS_TRY(const auto highest, highest_number());
    return put(encode(NumberRecord{highest + margin}), "set above all numbers in use");
  }
  return left("nothing tells what it was");
}

Result<Repair> VolumeRepairs::add_ended_record(InstanceId instance) {
  LCCFS_TRY(const bool there, somebody_watches_session(objects_.store(), instance));
  if (there) return left(still_there);
  LCCFS_TRY(const auto super, objects_.read_keys(format::super_object, {}));
  if (!super) return left("Super is not there");
  LCCFS_TRY(const bool added, objects_.change(txn::add_instance_record(instance, ended_record())));
  return stepped(added, "given a record that says it has ended, for the collector to read its queue");
}

/// Of all that is in use; numbers that stand in tokens alone are within the margin that callers leave.
Result<std::uint64_t> VolumeRepairs::highest_number() {
  std::uint64_t highest = root_ino.value;
  const auto count = [&highest](std::uint64_t number) {
    if (number < format::numbers_end) highest = std::max(highest, number);
  };
  std::string cursor;
  do {
    LCCFS_TRY(ListPage page, objects_.store().list(cursor));
    for (const auto& name : page.names) count(number_in(name));
    cursor = std::move(page.next_cursor);
  } while (!cursor.empty());
  LCCFS_TRY(const auto super, objects_.read(format::super_object, "s/"));
  if (!super) return highest;
  for (const auto& [key, value] : super->keys) {
    if (const auto instance = format::parse_instance_key(key)) count(instance->value);
  }
  return highest;
}

Result<std::uint64_t> VolumeRepairs::highest_fence() {
  std::uint64_t highest = 0;
  LCCFS_TRY(const auto super, objects_.read(format::super_object, "s/"));
  if (!super) return highest;
  for (const auto& [key, value] : super->keys) {
    const auto record = format::decode<format::InstanceRecord>(value);
    if (record) highest = std::max(highest, record->fence_number);
  }
  return highest;
}

}  // namespace lccfs::repair
