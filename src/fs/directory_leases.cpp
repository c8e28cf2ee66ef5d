// SPDX-License-Identifier: LGPL-2.1-or-later
//
//  settle the lease of another   | src/reclaim/settle.h
//
//  release    | object   | step                                                   | stop here leaves
//  1          | Inode.P  | [release directory lease] guard the tenure; lease      | done
//             |          | removed                                                |
//
// A lease that the store says is ours, where memory knows of no such tenure, is released by whoever meets it: a question,
// or an operation of ours.
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
/// Well below the threads that an instance answers questions with (OwnWatches::question_threads_), beside Recalls'.
constexpr unsigned most_waiting_questions = 64;
}  // namespace

Result<bool> DirectoryLeases::may_answer_by(const Inode& directory, std::span<const Ino> locked) {
  const auto tenure = directory.directory_lease;
  if (!tenure) return true;
  if (tenure->instance == instance_.id()) {
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

Result<> DirectoryLeases::release_as_asked(Ino directory) {
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
