// SPDX-License-Identifier: LGPL-2.1-or-later
//
//  settle the lease of another   | src/reclaim/settle.h
//  a lease from birth            | src/fs/create.cpp
//
//  take       | object   | step                                                   | stop here leaves
//  1          | Inode.P  | [take directory lease] guard live, no lease; lease =   | a lease unknown to memory: the next
//             |          | this tenure                                            | operation or question here releases it
//
//  behind     | object   | step                                                   | stop here leaves
//  1          | Inode.P  | [write names behind] guard the tenure; behind = it     | done: readers ask a holder
//             |          |                                                        | that has nothing to store
//
//  release    | object   | step                                                   | stop here leaves
//  -          | Inode.P  | memory knows of no tenure: read. One of ours that was  |
//             |          | taken since is known by now, and goes as below         |
//  -          |          | nothing is answered from memory any more, nor by the   |
//             |          | kernel                                                 |
//  -          | Inode.P  | what was answered is stored (name_log.cpp)             | a prefix of what was answered
//  1          | Inode.P  | [release directory lease] guard the tenure; lease      | done
//             |          | removed                                                |
//  1'         | Inode.P  | P was removed here (rmdir.cpp), and that is stored:    | done: a collector removes it
//             |          | [mark removed directory dead] guard the tenure; dead,  |
//             |          | lease removed                                          |
//
// A lease that the store says is ours, where memory knows of no such tenure, is released by whoever meets it: a question,
// or an operation of ours. Leases that are held at an unmount stay in the store: they are void then.
#include "fs/directory_leases.h"

#include <algorithm>

#include "base/expected_errors.h"
#include "base/log.h"
#include "format/object_names.h"
#include "fs/metadata.h"
#include "reclaim/settle.h"
#include "txn/namespace_txn.h"

namespace lccfs {

namespace {
constexpr std::chrono::milliseconds answer_busy_within{500};
constexpr std::chrono::seconds ctimes_awaited_for{1}, kernel_awaited_for{10};
/// How old the word of Super may be on which memory answers, and when it is asked again.
constexpr std::chrono::seconds believed_for{5}, asked_again_after{2};
/// A holder that has died keeps others waiting until it is fenced: so none holds what it does not use. Others have shown
/// no interest in what was made here, and with it goes what is known of its files: a build, and its removal, comes back.
constexpr HeldDirectories::Unused kept_unused_for{.taken = std::chrono::seconds(10),
                                                  .made_here = std::chrono::seconds(60)};
constexpr std::size_t released_at_once = 64, removed_released_at_once = 256;
/// Well below the threads that an instance answers questions with (OwnWatches::question_threads_), beside Recalls'.
constexpr unsigned most_waiting_questions = 64;

bool shows_live(const Result<MetaSnapshot>& super, const std::string& key) {
  const auto found = super ? super->keys.find(key) : std::map<std::string, Bytes>::const_iterator{};
  if (!super || found == super->keys.end()) return false;
  const auto record = format::decode<format::InstanceRecord>(found->second);
  return record && record->state == format::InstanceRecord::State::live;
}
}  // namespace

DirectoryLeases::DirectoryLeases(Instance& instance, KernelView& kernel, const FileSystemOptions& options)
    : held(
          instance.clock(), [&kernel](Ino directory) { kernel.forget_names_of(directory); },
          options.names_memory_bytes),
      log(instance, held),
      instance_(instance),
      kernel_(kernel),
      after_changes_(instance.super().has(format::feature::directory_leases) && !instance.read_only()
                         ? options.lease_after_changes
                         : 0),
      writes_behind_(options.names_behind && after_changes_ != 0 &&
                     instance.super().has(format::feature::names_behind)),
      activity_(instance.clock(), after_changes_) {}

/// The log first: what stands in it may end with the lease.
Result<MetaTxn> DirectoryLeases::guarded(MetaTxn step) {
  const auto object = format::parse_object_name(step.object);
  const Ino directory = std::get<format::InodeName>(object.value()).ino;
  LCCFS_CHECK(log.store_name_of_directory(directory));
  LCCFS_CHECK(log.store(directory));
  return txn::under_lease(std::move(step), held.tenure_of(directory));
}

Result<StepResult> DirectoryLeases::run(MetaTxn step) {
  LCCFS_TRY(auto guarded_step, guarded(std::move(step)));
  return instance_.run(std::move(guarded_step));
}

/// A name is changed here that a removal behind the answer has not seen: either it sees that the name is hidden, or this
/// sees the removal.
Result<StepResult> DirectoryLeases::run_on_names(Ino directory, MetaTxn step) {
  LCCFS_TRY(auto guarded_step, guarded(std::move(step)));
  if (held.removed_from(directory)) return StepResult{Decided::refused, 0};
  return instance_.run(std::move(guarded_step));
}

Result<Applied> DirectoryLeases::run_repeatable(MetaTxn step) {
  LCCFS_TRY(auto guarded_step, guarded(std::move(step)));
  return instance_.run_repeatable(std::move(guarded_step));
}

// ---- taken here

void DirectoryLeases::was_changed(Ino directory) {
  if (!takes_leases()) return;
  const auto mine = held.tenure_of(directory);
  if (mine && (!writes_behind_ || held.writes_behind(directory))) return;
  if (!activity_.changed(directory)) return;
  if (mine) {
    announce_names_behind(directory, *mine);
  } else {
    take(directory, writes_behind_);
  }
}

void DirectoryLeases::was_looked_up(const Inode& directory) {
  if (!takes_leases() || directory.directory_lease || directory.sealed() || !directory.live()) return;
  if (activity_.looked_up(directory.ino)) take(directory.ino, false);
}

bool DirectoryLeases::begin_to_empty(Ino directory) {
  if (!writes_behind_ || held.writes_behind(directory) || !activity_.is_emptied(directory)) return false;
  const auto mine = held.tenure_of(directory);
  return mine ? announce_names_behind(directory, *mine) : take(directory, true);
}

bool DirectoryLeases::announce_names_behind(Ino directory, Token tenure) {
  const auto step = instance_.run(txn::write_names_behind(directory, tenure));
  const bool is_applied = step && step->decided == Decided::applied;
  if (is_applied) held.may_write_behind(directory, tenure);
  return is_applied;
}

/// Asked for meanwhile, it is not to be held any more: memory has forgotten the tenure then.
bool DirectoryLeases::take(Ino directory, bool names_behind) {
  const Token tenure = instance_.next_token();
  if (!held.begin(directory, tenure)) return false;
  const auto taken = instance_.run(txn::take_directory_lease(directory, tenure, names_behind));
  const bool is_applied = taken && taken->decided == Decided::applied;
  if (is_applied && taken->version != 0 && held.take_effect(directory, tenure, taken->version)) {
    if (names_behind) held.may_write_behind(directory, tenure);
    return true;
  }
  held.end(directory, tenure);
  if (!is_applied) return false;
  if (const auto released = reclaim::end_directory_lease(instance_, directory, tenure); !released) {
    log::debug(format::inode_object(directory) + ": its lease stays: " + released.error().context);
  }
  return false;
}

void DirectoryLeases::release_unused() {
  if (instance_.fenced()) return;
  const Lock lock(mutex_);
  const auto unused = held.unused_for(kept_unused_for, released_at_once, removed_released_at_once);
  for (const Ino directory : unused) release(directory, Because::unused);
}

// ---- whether this client may still answer

bool DirectoryLeases::may_answer_from_memory() {
  if (instance_.fenced()) return false;
  const auto is_known_for = [this](auto time) {
    return instance_.clock().elapsed() - belief_->live_at.load() < std::chrono::nanoseconds(time);
  };
  if (!is_known_for(asked_again_after) && !belief_->is_asking.exchange(true)) ask_super();
  return is_known_for(believed_for);
}

/// Every fence is marked there before anybody relies on it.
void DirectoryLeases::ask_super() {
  const auto key = format::instance_key(instance_.id());
  instance_.query_async({.object = format::super_object, .keys = {key}},
                        [belief = belief_, key, sent = instance_.clock().elapsed()](const Result<MetaSnapshot>& super) {
                          if (shows_live(super, key)) belief->live_at = sent;
                          belief->is_asking = false;
                        });
}

// ---- in the way

Result<> DirectoryLeases::make_way(const Inode& directory) {
  if (is_free_or_ours(directory)) return {};
  const auto tenure = *directory.directory_lease;
  return tenure.instance == instance_.id() ? reclaim::end_directory_lease(instance_, directory.ino, tenure)
                                           : settle(directory.ino, tenure);
}

bool DirectoryLeases::has_answered_more(const Inode& directory) {
  if (!directory.names_behind || directory.directory_lease->instance == instance_.id()) return false;
  if (!instance_.read_only()) return true;
  const Lock lock(mutex_);
  return !expired_.contains(directory.directory_lease->instance);
}

Result<> DirectoryLeases::make_way(Ino directory) {
  LCCFS_TRY(const auto now, or_stale(read_inode(instance_, directory)));
  return make_way(now);
}

/// An expired holder is asked once, however many directories it has left.
Result<> DirectoryLeases::settle(Ino directory, Token tenure) {
  bool is_expired = false;
  {
    const Lock lock(mutex_);
    is_expired = expired_.contains(tenure.instance);
  }
  if (is_expired) return reclaim::end_lease_of_expired(instance_, directory, tenure);
  LCCFS_TRY(const auto holder, reclaim::settle_directory_lease(instance_, directory, tenure));
  if (holder != Settled::expired) return {};
  if (instance_.read_only()) {  // it may only have been silent
    LCCFS_TRY(const auto seen, instance_.look_at(tenure.instance));
    if (seen != Instance::Seen::expired) return {};
  }
  const Lock lock(mutex_);
  expired_.insert(tenure.instance);
  return {};
}

Result<StepResult> DirectoryLeases::run_or_make_way(Ino directory, MetaTxn step) {
  auto done = run(std::move(step));
  if (done && done->decided == Decided::refused) LCCFS_CHECK(make_way(directory));
  return done;
}

// ---- releases

format::Answer DirectoryLeases::answer(const format::Question& question) {
  using format::Answer;
  activity_.asked_for(question.ino);
  Lock lock(mutex_);
  const auto asked_for = release(question.ino, Because::asked);
  if (waiting_ < most_waiting_questions) {
    ++waiting_;
    const auto is_finished = [&asked_for] { return asked_for->finished; };
    instance_.clock().wait_for(changed_, lock, answer_busy_within, is_finished);
    --waiting_;
  }
  return {asked_for->succeeded ? Answer::Kind::done : Answer::Kind::busy};
}

std::shared_ptr<DirectoryLeases::Release> DirectoryLeases::release(Ino directory, Because because) {
  auto& under_way = under_way_[directory];
  if (!under_way) {
    under_way = std::make_shared<Release>();
    threads_.post([this, directory, because] {
      const auto released = release_now(directory, because);
      if (because == Because::asked) recalled_(directory);
      end(directory, released);
    });
  }
  return under_way;
}

/// One that is being taken meanwhile is released by who takes it. A tenure that memory knows is released without a read,
/// which might wait for a step of ours that hangs. What the read shows may have been taken since memory was looked at:
/// then memory has to forget it first. (By who found it worth a lease before the question came: nobody does after it.)
Result<> DirectoryLeases::release_now(Ino directory, Because because) {
  if (const auto mine = held.leave(directory)) {
    make_kernel_ask(directory);
    const auto ctimes = begin_to_store_ctimes(directory);
    LCCFS_CHECK(store_log(directory, because));
    LCCFS_CHECK(store_attributes(directory, because));
    LCCFS_TRY(const bool is_removed, store_removal(directory));
    wait_for(*ctimes, ctimes_awaited_for);  // one object that does not answer keeps nobody out of the directory
    LCCFS_CHECK(is_removed ? reclaim::end_removed_directory(instance_, directory, *mine)
                           : reclaim::end_directory_lease(instance_, directory, *mine));
    held.end(directory, *mine);
    return {};
  }
  LCCFS_TRY(const auto now, or_none(read_inode(instance_, directory)));
  if (!now) return {};
  const auto tenure = now->directory_lease;
  if (!tenure || tenure->instance != instance_.id()) return {};
  if (held.knows_of(directory, *tenure)) return release_now(directory, because);
  return reclaim::end_directory_lease(instance_, directory, *tenure);
}

/// The kernel waits for programs that change names in the directory: some of them may wait for another client, which may
/// wait for this release. Then all names that the kernel keeps end at once.
void DirectoryLeases::make_kernel_ask(Ino directory) {
  if (!gives_names()) return;
  kernel_.drop_attributes(directory);
  if (!held.kept_by_kernel(directory)) return;
  const auto expiry = std::make_shared<Work>();
  kernel_threads_.post([this, directory, expiry] {
    while (const auto kept = held.kept_by_kernel(directory)) {
      kernel_.expire_name(directory, kept->name);
      held.expired(directory, *kept);
    }
    end(*expiry);
  });
  if (wait_for(*expiry, kernel_awaited_for)) return;
  kernel_.forget_names_of(directory);
  while (const auto kept = held.kept_by_kernel(directory)) held.expired(directory, *kept);
}

Result<> DirectoryLeases::make_kernel_ask_before_move(const txn::Name& name) {
  if (held.may_leave(name)) return {};
  kernel_threads_.post([this, name] { kernel_.expire_name(name.directory, name.name); });
  return failure(ErrorCode::stale, describe(name) + ": the kernel keeps this name");
}

Result<> DirectoryLeases::make_kernel_ask_before_step(std::initializer_list<const txn::Name*> names) {
  Result<> all;
  for (const auto* name : names) {
    if (held.writes_behind(name->directory)) continue;
    auto asked = make_kernel_ask_before_move(*name);
    if (!asked) all = std::move(asked);
  }
  return all;
}

void DirectoryLeases::forget_names_once_fenced() {
  if (instance_.fenced() && !has_forgotten_names_.exchange(true)) kernel_.forget_names();
}

std::shared_ptr<DirectoryLeases::Work> DirectoryLeases::begin_to_store_ctimes(Ino directory) {
  auto sent = std::make_shared<Work>();
  instance_.unstored().store_ctimes(instance_.unstored().ctimes_of(directory), [sent](const Result<>&) { end(*sent); });
  return sent;
}

void DirectoryLeases::end(Work& work) {
  const Lock lock(work.mutex);
  work.is_done = true;
  work.changed.notify_all();
}

/// Whether it was done within that time.
bool DirectoryLeases::wait_for(Work& work, std::chrono::nanoseconds at_most) {
  Lock lock(work.mutex);
  const auto is_done = [&work]() REQUIRES(work.mutex) { return work.is_done; };
  return is_done() || instance_.clock().wait_for(work.changed, lock, at_most, is_done);
}

/// As bytes that find no room when another client needs the lease (docs/DATA.md section 10), names are lost: nobody waits
/// for a full pool.
Result<> DirectoryLeases::store_log(Ino directory, Because because) {
  auto stored = log.store(directory);
  const bool is_given_up = !stored && may_be_lost(stored.error(), because) && log.give_up(directory, stored.error());
  return is_given_up ? Result<>() : stored;
}

/// The same of directories that have their names there.
Result<> DirectoryLeases::store_attributes(Ino directory, Because because) {
  auto stored = log.store_attributes_in(directory);
  const bool are_given_up =
      !stored && may_be_lost(stored.error(), because) && log.give_up_attributes_in(directory, stored.error());
  return are_given_up ? Result<>() : stored;
}

/// Whether it was removed: the store knows it then. (What is lost leaves it as it was.)
Result<bool> DirectoryLeases::store_removal(Ino directory) {
  const auto parent = held.removed_from(directory);
  if (!parent) return false;
  LCCFS_CHECK(log.store(*parent));
  return held.is_removal_stored(directory);
}

void DirectoryLeases::end(Ino directory, const Result<>& done) {
  if (!done) {
    log::failed(log::Level::error, format::inode_object(directory) + ": its lease is not released", done.error());
    held.was_used(directory);  // others first, before it is tried again
  }
  const Lock lock(mutex_);
  const auto release = under_way_.extract(directory).mapped();
  release->finished = true;
  release->succeeded = done.has_value();
  changed_.notify_all();
}

void DirectoryLeases::wait() {
  Lock lock(mutex_);
  lock.wait(changed_, [this]() REQUIRES(mutex_) { return under_way_.empty(); });
}

}  // namespace lccfs
