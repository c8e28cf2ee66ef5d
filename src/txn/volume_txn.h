// SPDX-License-Identifier: LGPL-2.1-or-later
// The transactions that make a volume, and those on its own objects: Super, Alloc and sessions (docs/PROTOCOL.md
// sections 2 and 5). Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs::txn {

MetaTxn make_alloc();
/// The root directory: no directory holds an entry for it, so it has no back-pointer; its ".." is itself.
/// `last_before`: inodes up to this number may have had a name in a root that was lost. Its birth token keeps it.
MetaTxn make_root(TimeSpec now, Ino last_before = root_ino);
MetaTxn make_super(const format::SuperRecord& super);

/// Takes the numbers [old_next, old_next + count). Guarded by the old value: run twice, it wastes numbers.
MetaTxn take_numbers(std::uint64_t old_next, std::uint64_t count);

MetaTxn add_instance_record(InstanceId instance, const Bytes& record);
/// The same, for an instance that starts: refused where Super is no longer as `read`, whose features it knows.
MetaTxn register_instance(InstanceId instance, const Bytes& record, const format::SuperRecord& read);
/// Refused where anything of Super has changed since it was of that version: nobody has registered in between.
MetaTxn set_features(std::uint64_t version, const format::SuperRecord& super);
MetaTxn end_instance_record(InstanceId instance, const Bytes& live_record, const Bytes& ended_record);
/// Marks the record fenced and raises the fence counter, both under guards on what was read.
MetaTxn fence_instance_record(InstanceId instance, const Bytes& live_record, const Bytes& fenced_record,
                              std::uint64_t old_fences);
MetaTxn remove_instance_record(InstanceId instance, const Bytes& record);

/// From the value as read (nullopt: there was none) to one that was never there: run twice, it is done once. For
/// Instance::run_repeatable: if it is refused, the caller reads what is there.
MetaTxn take_rename_lock(const std::optional<Bytes>& read, const format::RenameLockRecord& held);
MetaTxn release_rename_lock(const format::RenameLockRecord& held);

MetaTxn make_session(InstanceId instance);
MetaTxn remove_session(InstanceId instance);

/// Of an instance that is expired or about to end. May be done twice.
MetaTxn remove_step_number(Ino ino, InstanceId instance);

struct NumberedItem {
  std::uint64_t number = 0;
  format::QueueItem item;
};
MetaTxn append_queue_items(InstanceId instance, const std::vector<NumberedItem>& items);
MetaTxn remove_queue_items(InstanceId instance, const std::vector<std::uint64_t>& numbers);

}  // namespace lccfs::txn
