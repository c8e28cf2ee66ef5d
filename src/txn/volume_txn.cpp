// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/volume_txn.h"

#include "txn/parts.h"

namespace lccfs::txn {
namespace {

MetaTxn change_super(const char* step, auto... parts) {
  return make(format::super_object, step, guard::ObjectExists{}, std::move(parts)...);
}

}  // namespace

MetaTxn make_alloc() {
  return make(format::alloc_object, "make alloc", mutation::CreateExclusive{}, set(xattr::next, format::first_number));
}

MetaTxn make_root(TimeSpec now, Ino last_before) {
  format::AttrRecord attr;
  attr.type = FileType::directory;
  attr.mode = 0755;
  attr.birth = now;
  attr.birth_token = Token{InstanceId{0}, last_before.value};
  auto txn = make_inode(root_ino, "make root", attr, now);
  add(txn, set(xattr::nsub, 0));
  return txn;
}

MetaTxn make_super(const format::SuperRecord& super) {
  return make(format::super_object, "make super", mutation::CreateExclusive{}, set(xattr::super, super),
              set(xattr::fences, 0));
}

MetaTxn take_numbers(std::uint64_t old_next, std::uint64_t count) {
  return make(format::alloc_object, "take numbers", guard::ObjectExists{},
              guard::XattrEquals{xattr::next, encode(format::NumberRecord{old_next})},
              set(xattr::next, old_next + count));
}

MetaTxn add_instance_record(InstanceId instance, const Bytes& record) {
  const auto key = format::instance_key(instance);
  return change_super("add instance record", guard::KeyAbsent{key}, mutation::SetKey{key, record});
}

MetaTxn register_instance(InstanceId instance, const Bytes& record, const format::SuperRecord& read) {
  auto txn = add_instance_record(instance, record);
  add(txn, guard::XattrEquals{xattr::super, encode(read)});
  return txn;
}

MetaTxn set_features(std::uint64_t version, const format::SuperRecord& super) {
  auto txn = change_super("set features", set(xattr::super, super));
  add(txn, guard::VersionIs{version});
  return txn;
}

MetaTxn end_instance_record(InstanceId instance, const Bytes& live_record, const Bytes& ended_record) {
  const auto key = format::instance_key(instance);
  return change_super("end instance", guard::KeyEquals{key, live_record}, mutation::SetKey{key, ended_record});
}

MetaTxn fence_instance_record(InstanceId instance, const Bytes& live_record, const Bytes& fenced_record,
                              std::uint64_t old_fences) {
  const auto key = format::instance_key(instance);
  return change_super("mark fenced", guard::KeyEquals{key, live_record},
                      guard::XattrEquals{xattr::fences, encode(format::NumberRecord{old_fences})},
                      mutation::SetKey{key, fenced_record}, set(xattr::fences, old_fences + 1));
}

MetaTxn remove_instance_record(InstanceId instance, const Bytes& record) {
  const auto key = format::instance_key(instance);
  return change_super("remove instance record", guard::KeyEquals{key, record}, mutation::RemoveKey{key});
}

MetaTxn take_rename_lock(const std::optional<Bytes>& read, const format::RenameLockRecord& held) {
  auto txn = change_super("take rename lock", mutation::SetKey{format::rename_lock_key, encode(held)});
  if (read) {
    add(txn, guard::KeyEquals{format::rename_lock_key, *read});
  } else {
    add(txn, guard::KeyAbsent{format::rename_lock_key});
  }
  return txn;
}

MetaTxn release_rename_lock(const format::RenameLockRecord& held) {
  auto released = held;
  released.kind = format::RenameLockRecord::Kind::free;
  return change_super("release rename lock", guard::KeyEquals{format::rename_lock_key, encode(held)},
                      mutation::SetKey{format::rename_lock_key, encode(released)});
}

MetaTxn make_session(InstanceId instance) {
  auto txn = make(format::session_object(instance), "make session", mutation::CreateExclusive{});
  txn.even_if_full = true;  // else no client could start, and remove something
  return txn;
}

MetaTxn remove_session(InstanceId instance) {
  return make(format::session_object(instance), "remove session", guard::ObjectExists{}, mutation::Remove{});
}

MetaTxn remove_step_number(Ino ino, InstanceId instance) {
  return make(ino, "remove step number", guard::ObjectExists{}, mutation::RemoveKey{format::step_number_key(instance)});
}

MetaTxn append_queue_items(InstanceId instance, const std::vector<NumberedItem>& items) {
  auto txn = make(format::session_object(instance), "log queue items", guard::ObjectExists{});
  for (const auto& [number, item] : items) add(txn, mutation::SetKey{format::queue_key(number), encode(item)});
  return txn;
}

MetaTxn remove_queue_items(InstanceId instance, const std::vector<std::uint64_t>& numbers) {
  auto txn = make(format::session_object(instance), "drop queue items", guard::ObjectExists{});
  for (const auto number : numbers) add(txn, mutation::RemoveKey{format::queue_key(number)});
  return txn;
}

}  // namespace lccfs::txn
