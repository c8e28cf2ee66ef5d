// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/recalls.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "format/object_names.h"

namespace lccfs {

using format::Question;

namespace {
constexpr std::chrono::milliseconds answer_busy_after{500};
constexpr unsigned most_waiting_for_one = 16;
/// Well below the threads that an instance answers questions with (OwnWatches::question_threads_): a question never
/// waits for one of them, however many are asked of files that hang.
constexpr unsigned most_waiting = 128;

/// An asker who only looks is not kept waiting by bytes that cannot be stored, nor are they lost for it.
bool is_told_what_is_stored(const Question& question, const FileNode& node, const Error& why_not_more) {
  return question.kind == Question::Kind::store_attributes && node.buffer->is_failing() &&
         why_not_more.code != ErrorCode::fenced;
}
}  // namespace

std::shared_ptr<Recalls::Recall> Recalls::join(const Question& question) {
  std::shared_ptr<Recall> mine;
  {
    const Lock lock(mutex_);
    auto& under_way = under_way_[key_of(question)];
    if (under_way) return under_way;
    mine = under_way = std::make_shared<Recall>();
  }
  begin(question);
  return mine;
}

format::Answer Recalls::answer(const Question& question) {
  using format::Answer;
  std::vector<std::shared_ptr<Recall>> all{join({question.kind, question.ino, question.from_open})};
  for (const Ino ino : question.others) all.push_back(join({question.kind, ino, question.from_open}));
  Lock lock(mutex_);
  // A question that may not wait gets the answer of this moment.
  const auto has_room = [](const auto& recall) { return recall->waiting < most_waiting_for_one; };
  if (waiting_ < most_waiting && std::ranges::all_of(all, has_room)) {
    for (const auto& recall : all) ++recall->waiting;
    ++waiting_;
    const auto are_finished = [&all] { return std::ranges::all_of(all, &Recall::finished); };
    instance_.clock().wait_for(changed_, lock, answer_busy_after, are_finished);
    --waiting_;
    for (const auto& recall : all) --recall->waiting;
  }
  return {std::ranges::all_of(all, &Recall::succeeded) ? Answer::Kind::done : Answer::Kind::busy};
}

void Recalls::wait() {
  Lock lock(mutex_);
  changed_.wait(lock, [this]() REQUIRES(mutex_) { return under_way_.empty(); });
}

/// Does not block: what has to wait for the store has threads, and what waits for the file's reads and writes has none.
void Recalls::begin(const Question& question) {
  auto asked_for = files_.node(question.ino);
  bool keep = false;
  {
    const Lock lock(asked_for->mutex);
    keep = question.kind == Question::Kind::store_attributes && asked_for->lease_held && asked_for->writers > 0;
    asked_for->is_shared = asked_for->is_shared || (asked_for->lease_held && question.from_open);
  }
  if (keep) {
    return threads_.post([this, question, asked_for = std::move(asked_for)]() mutable {
      auto done = asked_for->store_dirty(true);
      if (!done && is_told_what_is_stored(question, *asked_for, done.error())) done = {};
      end(question, std::move(asked_for), done);
    });
  }
  auto& gate = asked_for->gate;
  gate.enter_alone([this, question, asked_for = std::move(asked_for)]() mutable {
    threads_.post([this, question, asked_for = std::move(asked_for)]() mutable {
      release_as_asked(question, std::move(asked_for));
    });
  });
}

/// Also where memory knows of no lease: the asker has read that it is ours, so a step of ours whose outcome we never
/// learnt may have taken it.
void Recalls::release_as_asked(const Question& question, std::shared_ptr<FileNode>&& node) {
  auto done = node->find_own();
  if (done) done = node->release();
  if (!done && is_told_what_is_stored(question, *node, done.error())) {
    done = {};
  } else if (!done) {
    done = node->release_at_any_price();
  }
  node->gate.leave_alone();
  kernel_.drop_attributes(question.ino);
  kernel_.drop_pages_later(question.ino);
  end(question, std::move(node), done);
}

void Recalls::end(const Question& question, std::shared_ptr<FileNode>&& node, const Result<>& done) {
  if (!done) log::error(format::inode_object(node->ino) + ": asked for by another client: " + done.error().context);
  files_.let_go(std::move(node));
  const Lock lock(mutex_);
  const auto ended = under_way_.extract(key_of(question)).mapped();
  ended->finished = true;
  ended->succeeded = done.has_value();
  changed_.notify_all();
}

}  // namespace lccfs
