// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/instance_txn.h"

#include "format/object_names.h"

namespace lccfs::txn {

using format::encode;
using format::NumberRecord;

MetaTxn take_numbers(std::uint64_t old_next, std::uint64_t count) {
  return {format::alloc_object,
          "take numbers",
          {guard::ObjectExists{}, guard::XattrEquals{format::xattr::next, encode(NumberRecord{old_next})}},
          {mutation::SetXattr{format::xattr::next, encode(NumberRecord{old_next + count})}}};
}

MetaTxn add_instance_record(InstanceId instance, const Bytes& record) {
  const auto key = format::instance_key(instance);
  return {format::super_object,
          "add instance record",
          {guard::ObjectExists{}, guard::KeyAbsent{key}},
          {mutation::SetKey{key, record}}};
}

MetaTxn end_instance_record(InstanceId instance, const Bytes& live_record, const Bytes& ended_record) {
  const auto key = format::instance_key(instance);
  return {format::super_object,
          "end instance",
          {guard::ObjectExists{}, guard::KeyEquals{key, live_record}},
          {mutation::SetKey{key, ended_record}}};
}

MetaTxn fence_instance_record(InstanceId instance, const Bytes& live_record, const Bytes& fenced_record,
                              std::uint64_t old_fences) {
  const auto key = format::instance_key(instance);
  return {format::super_object,
          "mark fenced",
          {guard::ObjectExists{}, guard::KeyEquals{key, live_record},
           guard::XattrEquals{format::xattr::fences, encode(NumberRecord{old_fences})}},
          {mutation::SetKey{key, fenced_record},
           mutation::SetXattr{format::xattr::fences, encode(NumberRecord{old_fences + 1})}}};
}

MetaTxn remove_instance_record(InstanceId instance, const Bytes& record) {
  const auto key = format::instance_key(instance);
  return {format::super_object,
          "remove instance record",
          {guard::ObjectExists{}, guard::KeyEquals{key, record}},
          {mutation::RemoveKey{key}}};
}

MetaTxn make_session(InstanceId instance) {
  return {format::session_object(instance), "make session", {}, {mutation::CreateExclusive{}}};
}

MetaTxn remove_session(InstanceId instance) {
  return {format::session_object(instance), "remove session", {guard::ObjectExists{}}, {mutation::Remove{}}};
}

MetaTxn remove_step_number(Ino ino, InstanceId instance) {
  return {format::inode_object(ino),
          "remove step number",
          {guard::ObjectExists{}},
          {mutation::RemoveKey{format::step_number_key(instance)}}};
}

MetaTxn append_queue_items(InstanceId instance, const std::vector<NumberedItem>& items) {
  MetaTxn txn{format::session_object(instance), "log queue items", {guard::ObjectExists{}}, {}};
  for (const auto& [number, item] : items) {
    txn.mutations.emplace_back(mutation::SetKey{format::queue_key(number), encode(item)});
  }
  return txn;
}

MetaTxn remove_queue_items(InstanceId instance, const std::vector<std::uint64_t>& numbers) {
  MetaTxn txn{format::session_object(instance), "drop queue items", {guard::ObjectExists{}}, {}};
  for (const auto number : numbers) txn.mutations.emplace_back(mutation::RemoveKey{format::queue_key(number)});
  return txn;
}

}  // namespace lccfs::txn
