// SPDX-License-Identifier: LGPL-2.1-or-later
//
//  settle the lease of another   | src/reclaim/settle.h
//  a lease from birth            | src/fs/create.cpp
//
//  take       | object   | step                                                   | stop here leaves
//  1          | Inode.P  | [take directory lease] guard the version after a step  | a lease that nobody's memory knows of: who
//             |          | or a read of ours; live; no lease; lease = this tenure | meets it releases it, or settles it
//
//  release    | object   | step                                                   | stop here leaves
//  -          |          | nothing is answered from memory any more               |
//  1          | Inode.P  | [release directory lease] guard the tenure; lease      | done
//             |          | removed                                                |
//
// A lease that the store says is ours, where memory knows of no such tenure, is released by whoever meets it: a question,
// or an operation of ours. Leases that are held at an unmount stay in the store: they are void then.
#include "fs/directory_leases.h"

#include <algorithm>

#include "base/log.h"
#include "format/object_names.h"
#include "fs/metadata.h"
#include "reclaim/settle.h"
#include "txn/namespace_txn.h"

namespace lccfs {

namespace {
constexpr std::chrono::milliseconds answer_busy_within{500};
/// Well below the minute after which a client that stands still may be fenced.
constexpr std::chrono::seconds believed_for{5};
/// Well below the threads that an instance answers questions with (OwnWatches::question_threads_), beside Recalls'.
constexpr unsigned most_waiting_questions = 64;
}  // namespace

DirectoryLeases::DirectoryLeases(Instance& instance, unsigned after_changes)
    : instance_(instance),
      after_changes_(instance.super().has(format::feature::directory_leases) && !instance.read_only() ? after_changes
                                                                                                      : 0),
      activity_(instance.clock(), after_changes_) {}

MetaTxn DirectoryLeases::guarded(MetaTxn step) const {
  const auto object = format::parse_object_name(step.object);
  const auto mine = held.tenure_of(std::get<format::InodeName>(object.value()).ino);
  return txn::under_lease(std::move(step), mine);
}

// ---- taken here

void DirectoryLeases::was_changed(Ino directory, std::uint64_t version) {
  if (!takes_leases() || version == 0 || held.tenure_of(directory)) return;
  if (activity_.changed(directory)) take(directory, version);
}

void DirectoryLeases::was_looked_up(const Inode& directory) {
  if (!takes_leases() || directory.directory_lease || directory.sealed() || !directory.live()) return;
  if (activity_.looked_up(directory.ino)) take(directory.ino, directory.version);
}

/// Asked for meanwhile, it is not to be held any more: memory has forgotten the tenure then.
void DirectoryLeases::take(Ino directory, std::uint64_t version) {
  const Token tenure = instance_.next_token();
  if (!held.begin(directory, tenure)) return;
  const auto taken = instance_.run_repeatable(txn::take_directory_lease(directory, version, tenure));
  if (taken && held.take_effect(directory, tenure, taken->version)) return;
  held.end(directory, tenure);
  if (!taken) return;
  if (const auto released = settle_own(directory, tenure); !released) {
    log::debug(format::inode_object(directory) + ": its lease stays: " + released.error().context);
  }
}

void DirectoryLeases::heard_from_store(std::chrono::nanoseconds sent) {
  auto last = heard_.load();
  while (last < sent && !heard_.compare_exchange_weak(last, sent)) continue;
}

bool DirectoryLeases::may_answer_from_memory() const {
  return !instance_.fenced() && instance_.clock().elapsed() - heard_.load() < believed_for;
}

// ---- in the way

Result<bool> DirectoryLeases::may_answer_by(const Inode& directory, std::span<const Ino> locked) {
  const auto tenure = directory.directory_lease;
  if (!tenure) return true;
  if (tenure->instance == instance_.id()) {
    if (held.knows_of(directory.ino, *tenure)) return true;
    LCCFS_CHECK(settle_own(directory.ino, *tenure));
    return false;
  }
  const auto give_up = [this, locked]() -> Result<> {
    const Lock lock(mutex_);
    const auto is_asked_for = [this](Ino one) REQUIRES(mutex_) { return under_way_.contains(one); };
    if (std::ranges::none_of(locked, is_asked_for)) return {};
    return failure(ErrorCode::stale, "another client waits for a directory of this call");
  };
  LCCFS_CHECK(reclaim::settle_directory_lease(instance_, directory.ino, *tenure, give_up));
  return instance_.read_only();
}

Result<StepResult> DirectoryLeases::run_or_make_way(Ino directory, MetaTxn step) {
  auto done = run(std::move(step));
  if (done && done->decided == Decided::refused) LCCFS_CHECK(make_way(directory));
  return done;
}

Result<> DirectoryLeases::make_way(Ino directory) {
  for (;;) {
    LCCFS_TRY(const auto now, or_stale(read_inode(instance_, directory)));
    LCCFS_TRY(const bool is_free, may_answer_by(now));
    if (is_free) return {};
  }
}

Result<> DirectoryLeases::settle_own(Ino directory, Token tenure) {
  const auto released = instance_.run_repeatable(txn::release_directory_lease(directory, tenure));
  const bool was_needless = !released && released.error().code == ErrorCode::guard_failed;
  if (was_needless || done_or_gone(released)) return {};
  return std::unexpected(released.error());
}

// ---- questions

format::Answer DirectoryLeases::answer(const format::Question& question) {
  using format::Answer;
  const Ino directory = question.ino;
  activity_.asked_for(directory);
  Lock lock(mutex_);
  auto& under_way = under_way_[directory];
  if (!under_way) {
    under_way = std::make_shared<Recall>();
    threads_.post([this, directory] { end(directory, release_as_asked(directory)); });
  }
  const auto recall = under_way;
  if (waiting_ < most_waiting_questions) {
    ++waiting_;
    const auto is_finished = [&recall] { return recall->finished; };
    instance_.clock().wait_for(changed_, lock, answer_busy_within, is_finished);
    --waiting_;
  }
  return {recall->succeeded ? Answer::Kind::done : Answer::Kind::busy};
}

/// One that is being taken meanwhile is released by who takes it. A tenure that memory knows is released without a read,
/// which might wait behind a step of ours that hangs.
Result<> DirectoryLeases::release_as_asked(Ino directory) {
  if (const auto mine = held.leave(directory)) {
    LCCFS_CHECK(settle_own(directory, *mine));
    held.end(directory, *mine);
    return {};
  }
  const auto now = read_inode(instance_, directory);
  if (!now && now.error().code == ErrorCode::not_found) return {};
  if (!now) return std::unexpected(now.error());
  const auto tenure = now->directory_lease;
  if (!tenure || tenure->instance != instance_.id()) return {};
  return settle_own(directory, *tenure);
}

void DirectoryLeases::end(Ino directory, const Result<>& done) {
  if (!done) log::error(format::inode_object(directory) + ": asked for by another client: " + done.error().context);
  const Lock lock(mutex_);
  const auto recall = under_way_.extract(directory).mapped();
  recall->finished = true;
  recall->succeeded = done.has_value();
  changed_.notify_all();
}

void DirectoryLeases::wait() {
  Lock lock(mutex_);
  changed_.wait(lock, [this]() REQUIRES(mutex_) { return under_way_.empty(); });
}

}  // namespace lccfs
