// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Start and end of an instance.
//
//  start   | object       | step                                  | stop here leaves
//  1       | Alloc        | take numbers: own, and inode numbers   | numbers wasted
//  2       | Super        | record s/<me>                          | a live record: found gone, and fenced
//  3       | Session.<me> | create                                 | the same
//  4       | both         | watch                                  | the same
//  5       | Super        | read the own record: still live?       | who was fenced meanwhile does no step
//  6       | Session.<me> | range intent                           | the same
//  A read-only one that may not take a number does none of these, and has nothing to end.
//
//  end     | object       | step                                  | stop here leaves
//  1       | Session.<me> | drop range intents                     | a live record: found gone, and fenced
//  2       | Inode.*      | remove l/<me>, where it is worth it    | the same
//  3       | Super        | record -> ended                        | (last step, if the queue holds items)
//  3'      | Session.<me> | remove (the queue is empty)            | a live record without a session
//  4'      | Super        | remove the record                      |
#include "instance/instance.h"

#include <unistd.h>

#include <string>

#include "base/log.h"
#include "instance/session_watch.h"
#include "instance/steps_in_flight.h"
#include "objects/super.h"
#include "txn/volume_txn.h"

namespace lccfs {

namespace {

/// Few: a collector looks for each of them if this client dies, and many mounts make no more.
constexpr std::uint64_t inode_numbers_at_start = 256;

}  // namespace

Instance::Instance(std::shared_ptr<ObjectStore> store, Clock& clock) : store_(std::move(store)), clock_(clock) {}

Instance::~Instance() {
  std::map<std::string, OwnWatch> watches;
  {
    const std::lock_guard lock(watches_mutex_);
    ending_ = true;
    watches.swap(watches_);
  }
}

Result<std::unique_ptr<Instance>> Instance::start(std::shared_ptr<ObjectStore> store, Clock& clock,
                                                  const InstanceOptions& options) {
  std::unique_ptr<Instance> me(new Instance(std::move(store), clock));
  me->read_only_ = options.read_only;
  me->processes_ = options.processes;
  LCCFS_CHECK(me->read_super());
  LCCFS_CHECK(format::check_features(me->super_, options.read_only));
  if (!me->super_.data_pool.empty()) LCCFS_CHECK(me->store_->use_data_pool(me->super_.data_pool));
  if (!options.read_only) LCCFS_CHECK(me->store_->check_may_fence());  // else the first who is gone blocks us for ever
  const bool makes_inodes = options.makes_inodes && !options.read_only;
  const std::uint64_t inode_numbers = makes_inodes ? inode_numbers_at_start : 0;
  const auto numbers = me->take_numbers(1 + inode_numbers);
  if (!numbers && numbers.error().code == ErrorCode::permission_denied && options.read_only) {
    me->recorded_ = false;
    return me;
  }
  LCCFS_TRY(const std::uint64_t first, numbers);
  me->id_ = InstanceId{first};
  me->fate_->id = me->id_;
  LCCFS_CHECK(me->write_record(options));
  LCCFS_CHECK(me->set_watches());
  me->look_around();
  LCCFS_TRY(const bool live, me->own_record_is_live());
  if (!live) return failure(ErrorCode::fenced, "this client was taken for dead while it started: start it again");
  if (makes_inodes) {
    const Ino begin{first + 1};
    const Ino end{first + 1 + inode_numbers};
    LCCFS_CHECK(me->log_items({{format::QueueItem::Kind::range, begin, end, clock.wall_time()}}));
    me->next_ino_ = begin;
    me->end_ino_ = end;
  }
  return me;
}

Result<> Instance::read_super() {
  LCCFS_TRY(auto super, objects::read_super(objects::reader_of(*store_)));
  const auto fences = format::decode_fence_number(super.xattrs[format::xattr::fences]);
  if (!fences) return std::unexpected(format::damage_of("Super: fences", fences.error()));
  LCCFS_CHECK(store_->sync_fences());
  super_ = std::move(super.record);
  fences_seen_ = *fences;
  return {};
}

Result<std::uint64_t> Instance::take_numbers(std::uint64_t count) {
  for (;;) {
    LCCFS_TRY(auto alloc, query({.object = format::alloc_object, .xattrs = true, .ranges = {}, .keys = {}}));
    const auto next = format::decode_next_number(alloc.xattrs[format::xattr::next]);
    if (!next) return std::unexpected(format::damage_of("Alloc: next", next.error()));
    auto taken = apply_until_known(txn::take_numbers(*next, count));
    if (taken) return *next;
    if (taken.error().code != ErrorCode::guard_failed) return std::unexpected(std::move(taken).error());
  }
}

Result<> Instance::write_record(const InstanceOptions& options) {
  format::InstanceRecord record;
  record.host = host_name();
  record.pid = static_cast<std::uint64_t>(getpid());
  record.version = LCCFS_VERSION;
  record.since = clock_.wall_time();
  record.identity = store_->identity();
  record.mount_id = options.mount_id;
  record.process = processes_->own();
  record_ = encode(record);
  // A fresh number: if the record or the object is there already, it was us, and the step was run twice.
  auto added = apply_until_known(txn::add_instance_record(id_, record_));
  if (!added && added.error().code != ErrorCode::guard_failed) return std::unexpected(std::move(added).error());
  auto made = apply_until_known(txn::make_session(id_));
  if (!made && made.error().code != ErrorCode::exists) return std::unexpected(std::move(made).error());
  return {};
}

Result<> Instance::set_watches() {
  for (const std::string& object : {std::string(format::super_object), format::session_object(id_)}) {
    LCCFS_CHECK(set_watch(object));
  }
  return {};
}

/// A watch may be lost before it is kept: whoever keeps it looks, and on_lost comes too late to be heard.
Result<> Instance::set_watch(const std::string& object) {
  for (;;) {
    OwnWatch own{std::make_shared<SessionWatch>(*this, object), nullptr};
    LCCFS_TRY(own.watch, store_->watch(object, own.handler));
    const std::lock_guard lock(watches_mutex_);
    if (ending_) return {};
    if (own.handler->lost()) continue;
    std::swap(watches_[object], own);
    return {};
  }
}

Result<bool> Instance::own_record_is_live() {
  LCCFS_TRY(const auto found, read_record(id_));
  return found.record && found.raw == record_;
}

void Instance::set_watch_again(const std::string& object) {
  const std::lock_guard one_at_a_time(watch_again_mutexes_[object == format::super_object ? 0 : 1]);
  while (!fenced()) {
    {
      const std::lock_guard lock(watches_mutex_);
      const auto& kept = watches_[object];
      if (ending_ || (kept.handler && !kept.handler->lost())) return;
    }
    const auto set = set_watch(object);
    if (set) {
      const auto live = own_record_is_live();
      if (live && *live) return log::info("watch on " + object + " set again");
      if (live) return fate_->become_fenced("its record on Super is no longer live");
    } else if (set.error().code == ErrorCode::not_found) {
      return fate_->become_fenced(object + " is gone");
    } else if (set.error().code == ErrorCode::fenced) {
      return fate_->become_fenced(set.error().context);
    }
    clock_.sleep_for(std::chrono::seconds(1));
  }
}

void Instance::Fate::become_fenced(const std::string& why) {
  if (fenced.exchange(true)) return;
  log::error("instance " + std::to_string(id.value) +
             " was fenced: every request is answered with an error from now on. Unmount, and mount again. (" + why +
             ")");
}

/// Of this instance's steps in directories that lost names: once it is over, nobody has use for them.
Result<> Instance::remove_step_numbers() {
  std::set<Ino> directories;
  {
    const std::lock_guard lock(queue_mutex_);
    directories.swap(directories_to_tidy_);
  }
  StepsInFlight steps;
  for (const Ino directory : directories) {
    store_->apply_async(txn::remove_step_number(directory, id_),
                        [done = steps.next()](const Result<Applied>& applied) mutable {
                          const bool fenced = !applied && applied.error().code == ErrorCode::fenced;
                          done(fenced ? Result<>(std::unexpected(applied.error())) : Result<>());
                        });
  }
  return steps.wait();
}

Result<bool> Instance::queue_is_empty() {
  LCCFS_TRY(const auto session, query({.object = format::session_object(id_), .ranges = {{"q/", "", 1}}, .keys = {}}));
  return session.ranges.front().entries.empty();
}

// The watch on Super stays to the end: without any, a collector could take this instance for dead before its last step.
Result<> Instance::end() {
  std::map<std::string, OwnWatch> watches;
  if (!recorded_) return {};
  if (fenced()) return failure(ErrorCode::fenced, "this client was fenced");
  if (!read_only_) LCCFS_CHECK(drop_range_intents(Ranges::all));
  LCCFS_CHECK(remove_step_numbers());
  {
    const std::lock_guard lock(watches_mutex_);
    ending_ = true;
    watches.swap(watches_);
  }
  watches.erase(format::session_object(id_));
  LCCFS_TRY(const bool nothing_left, queue_is_empty());
  if (nothing_left) {
    auto removed = apply_until_known(txn::remove_session(id_));
    if (!removed && removed.error().code != ErrorCode::not_found) return std::unexpected(std::move(removed).error());
    auto gone = apply_until_known(txn::remove_instance_record(id_, record_));
    if (!gone && gone.error().code != ErrorCode::guard_failed) return std::unexpected(std::move(gone).error());
    return {};
  }
  LCCFS_TRY(auto record, format::decode<format::InstanceRecord>(record_));
  record.state = format::InstanceRecord::State::ended;
  auto ended = apply_until_known(txn::end_instance_record(id_, record_, encode(record)));
  if (!ended && ended.error().code != ErrorCode::guard_failed) return std::unexpected(std::move(ended).error());
  return {};
}

}  // namespace lccfs
