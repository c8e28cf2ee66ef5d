// SPDX-License-Identifier: LGPL-2.1-or-later
// What an instance needs to start (Super, Alloc, the root), and the queues.
#include <algorithm>
#include <variant>

#include "check/volume_facts.h"
#include "repair/one_byte.h"
#include "repair/repairs.h"
#include "txn/volume_txn.h"

namespace lccfs::repair {

using format::NumberRecord;
namespace xattr = format::xattr;

namespace {

constexpr const char* still_there = "its client is there: unmount it first";
constexpr std::uint64_t margin = std::uint64_t{1} << 20;  // of what was handed out last, nothing may be left
static_assert(check::end_of_use + 2 * margin <= format::numbers_end);

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

Result<Repair> Repairs::make_missing(const Finding& finding) {
  if (finding.object == format::alloc_object) {
    LCCFS_TRY(const auto highest, highest_number());
    return step(txn::make_alloc_from(highest + margin), "made anew, above all numbers in use");
  }
  if (finding.object == root_object()) {
    LCCFS_TRY(const auto last, last_number_given());
    return step(txn::make_root(clock_.wall_time(), Ino{last}), "made anew, without a name in it");
  }
  return left("nothing tells what was in it");
}

Result<Repair> Repairs::raise_numbers(const Finding& finding) {
  return raise_counter(format::alloc_object, xattr::next, finding.number + margin);
}

Result<Repair> Repairs::raise_fences(const Finding& finding) {
  return raise_counter(format::super_object, xattr::fences, finding.number);
}

Result<Repair> Repairs::raise_counter(const std::string& object, const char* name, std::uint64_t least) {
  LCCFS_TRY(const auto found, objects_.read_keys(object, {}));
  if (!found) return left(object + " is not there");
  const auto stored = found->number(name);
  if (stored && *stored >= least) return settled();
  return put(*found, {name}, encode(NumberRecord{least}), std::string(name) + " is now " + std::to_string(least));
}

Result<Repair> Repairs::derive_volume_part(const Object& object, const txn::Part& part) {
  if (const auto id = part.is_key ? format::parse_instance_key(part.name) : std::nullopt) {
    LCCFS_TRY(auto not_yet, unless_gone(*id));
    if (not_yet) return std::move(*not_yet);
    return put(object, part, ended_record(), "the instance is taken for ended");
  }
  if (part.is_key) return drop(object, part, "removed: what it led to is looked for by itself");
  if (part.name == xattr::fences) {
    LCCFS_TRY(const auto highest, highest_fence());
    return put(object, part, encode(NumberRecord{highest}), "set to the highest number in use");
  }
  if (part.name == xattr::next) {
    LCCFS_TRY(const auto highest, highest_number());
    return put(object, part, encode(NumberRecord{highest + margin}), "set above all numbers in use");
  }
  return left("nothing tells what it was");
}

std::optional<InstanceId> Repairs::unrecorded_client(const Finding& finding) {
  if (finding.kind == check::Kind::stray_session) return InstanceId{finding.number};
  const bool is_damaged = finding.kind == check::Kind::corrupt && finding.object == format::super_object &&
                          finding.is_key && !corrected(finding.object, {finding.part, true}, finding.seen);
  return is_damaged ? format::parse_instance_key(finding.part) : std::nullopt;
}

/// The last look of its minute: what comes before in a round may take long.
Result<std::optional<Repair>> Repairs::unless_gone(InstanceId client) {
  LCCFS_TRY(const bool gone, unrecorded_.is_gone(client));
  return gone ? std::nullopt : std::optional(left(still_there));
}

Result<Repair> Repairs::add_ended_record(const Finding& finding) {
  const InstanceId instance{finding.number};
  LCCFS_TRY(auto not_yet, unless_gone(instance));
  if (not_yet) return std::move(*not_yet);
  LCCFS_TRY(const auto super, objects_.read_keys(format::super_object, {}));
  if (!super) return left("Super is not there");
  return step(txn::add_instance_record(instance, ended_record()),
              "given a record that says it has ended, for the collector to read its queue");
}

/// Of objects and instances. Higher ones that stand in tokens alone the next check finds, and they raise Alloc once more.
Result<std::uint64_t> Repairs::highest_number() {
  std::uint64_t highest = root_ino.value;
  const auto count = [&highest](std::uint64_t number) {
    if (number < check::end_of_use) highest = std::max(highest, number);
  };
  LCCFS_CHECK(objects_.for_each_name([&](const std::string& name) { count(number_in(name)); }));
  LCCFS_TRY(const auto super, objects_.read(format::super_object, "s/"));
  if (!super) return highest;
  for (const auto& [key, value] : super->keys) {
    if (const auto instance = format::parse_instance_key(key)) count(instance->value);
  }
  return highest;
}

/// Of an instance that has ended, or an inode that is gone, only Alloc may tell.
Result<std::uint64_t> Repairs::last_number_given() {
  LCCFS_TRY(const auto highest, highest_number());
  LCCFS_TRY(const auto alloc, objects_.read_keys(format::alloc_object, {}));
  const auto next = alloc ? alloc->number(xattr::next) : std::nullopt;
  return next && *next <= check::end_of_use ? std::max(highest, *next - 1) : highest;
}

Result<std::uint64_t> Repairs::highest_fence() {
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
