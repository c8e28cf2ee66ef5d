// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Start and end of an instance.
//
//  start   | object       | step                                     | stop here leaves
//  1       | Alloc        | [take numbers] own, and inode numbers    | numbers that are never used
//  2       | Super        | [add instance record] s/<me>, guarded by | a live record: found gone, and fenced
//          |              | `super` as read; if that has changed     |
//          |              | (lccfs upgrade), read and check it again |
//  3       | Session.<me> | [make session]                           | the same
//  3'      | Super        | [remove instance record], if 3 is        | the same
//          |              | refused: there will be no instance       |
//  4       | both         | watch                                    | the same
//  5       | Super        | read the own record: if it is not live,  | the same
//          |              | the start fails                          |
//  6       | Session.<me> | [log queue items] range intent           | the same
//  A read-only one that may not take a number does none of these, and has nothing to end.
//
//  end     | object       | step                                     | stop here leaves
//  1       | Session.<me> | [drop queue items] range intents         | a live record: found gone, and fenced
//  2       | Inode.*      | [remove step number] l/<me>, of at most  | the same
//          |              | 1,024 directories                        |
//  3       | Super        | [end instance] the queue holds items     | done: collectors do the rest
//  3'      | Session.<me> | [remove session] the queue is empty      | a live record without a session: as after 1
//  4'      | Super        | [remove instance record]                 | done
#include "instance/instance.h"

#include <unistd.h>

#include "base/expected_errors.h"
#include "format/object_names.h"
#include "objects/super.h"
#include "txn/volume_txn.h"

namespace lccfs {

namespace {

/// Few: a collector looks for each of them if this client dies, and many mounts make no more.
constexpr std::uint64_t inode_numbers_at_start = 256;

}  // namespace

Instance::Instance(std::shared_ptr<ObjectStore> store, Clock& clock)
    : store_(std::make_unique<UnstoredInodes>(std::move(store))), clock_(clock) {}

Result<std::unique_ptr<Instance>> Instance::start(std::shared_ptr<ObjectStore> store, Clock& clock,
                                                  const InstanceOptions& options) {
  std::unique_ptr<Instance> me(new Instance(std::move(store), clock));
  me->me_.read_only = options.read_only;
  me->me_.processes = options.processes;
  LCCFS_CHECK(me->read_super());
  LCCFS_CHECK(objects::use_data_pool(*me->store_, me->super_));
  if (!options.read_only) LCCFS_CHECK(me->store_->check_may_fence());  // else the first one gone blocks us for ever
  const bool makes_inodes = options.makes_inodes && !options.read_only;
  const std::uint64_t inode_numbers = makes_inodes ? inode_numbers_at_start : 0;
  const auto numbers = take_numbers(me->steps_, 1 + inode_numbers);
  if (!numbers && numbers.error().code == ErrorCode::permission_denied && options.read_only) {
    me->me_.recorded = false;
    return me;
  }
  LCCFS_TRY(const std::uint64_t first, numbers);
  me->me_.id = InstanceId{first};
  LCCFS_CHECK(me->write_record(options));
  LCCFS_CHECK(me->watches_.start(me->record_));
  if (makes_inodes) LCCFS_CHECK(me->queue_.begin_range(first + 1, inode_numbers));
  return me;
}

Result<> Instance::read_super() {
  LCCFS_TRY(auto super, objects::read_super(objects::reader_of(*store_)));
  LCCFS_TRY(const std::uint64_t fences, fences_in(super));
  super_ = std::move(super.record);
  LCCFS_CHECK(format::check_features(super_, me_.read_only));
  return others_.sync_fences(fences);
}

Result<> Instance::write_record(const InstanceOptions& options) {
  format::InstanceRecord record;
  record.host = host_name();
  record.pid = static_cast<std::uint64_t>(getpid());
  record.version = LCCFS_VERSION;
  record.since = clock_.wall_time();
  record.identity = store_->identity();
  record.mount_id = options.mount_id;
  record.process = options.processes->own();
  record_ = encode(record);
  LCCFS_CHECK(add_record());
  // A fresh number: if the object is there already, it was us, and the step was run twice.
  auto made = done_or(ErrorCode::exists, steps_.apply_until_known(txn::make_session(me_.id)));
  const bool is_refused = !made && made.error().outcome == Outcome::definite;
  if (is_refused) static_cast<void>(steps_.apply_until_known(txn::remove_instance_record(me_.id, record_)));
  return made;
}

/// A fresh number: if a record is there already, it was us, and the step was run twice. Otherwise what is refused was
/// to be written beside another `super`, whose features must be known, too: `lccfs upgrade` came in between.
Result<> Instance::add_record() {
  for (;;) {
    const auto added = steps_.apply_until_known(txn::register_instance(me_.id, record_, super_));
    if (added) return {};
    if (added.error().code != ErrorCode::guard_failed) return std::unexpected(added.error());
    LCCFS_TRY(const auto found, others_.read_record(me_.id));
    if (!found.raw.empty()) return {};
    LCCFS_CHECK(read_super());
  }
}

// The watch on Super stays to the end: without any, a collector could take this instance for dead before its last step.
// What is refused was done by an earlier run, or by a collector.
Result<> Instance::end() {
  if (!me_.recorded) return {};
  LCCFS_CHECK(steps_.check_not_fenced());
  if (!me_.read_only) LCCFS_CHECK(queue_.drop_range_intents(OwnQueue::Ranges::all));
  LCCFS_CHECK(queue_.remove_step_numbers());
  auto watches = watches_.end();
  watches.erase(format::session_object(me_.id));
  LCCFS_TRY(const bool nothing_left, queue_.is_empty());
  if (nothing_left) {
    LCCFS_CHECK(done_or(ErrorCode::not_found, steps_.apply_until_known(txn::remove_session(me_.id))));
    const auto gone = steps_.apply_until_known(txn::remove_instance_record(me_.id, record_));
    return done_or(ErrorCode::guard_failed, gone);
  }
  LCCFS_TRY(auto record, format::decode<format::InstanceRecord>(record_));
  record.state = format::InstanceRecord::State::ended;
  const auto ended = steps_.apply_until_known(txn::end_instance_record(me_.id, record_, encode(record)));
  return done_or(ErrorCode::guard_failed, ended);
}

Result<bool> Instance::ensure_expired(InstanceId whom) {
  LCCFS_TRY(const auto seen, look_at(whom));
  return seen == Seen::expired;
}

}  // namespace lccfs
