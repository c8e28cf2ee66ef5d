// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/recalls.h"

#include <algorithm>
#include <utility>
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
constexpr std::size_t most_remembered = 4096;

bool only_stores(const Question& question) {
  return question.kind == Question::Kind::store_attributes || question.kind == Question::Kind::file_opened;
}

/// An asker that only reads does not wait for bytes that cannot be stored, and they are not lost for it. Nor for a lease
/// that is ours and could not be adopted: memory has nothing then.
bool is_told_what_is_stored(const Question& question, const FileNode& node, const Error& why_not_more) {
  const bool is_all_there_is = node.buffer->is_failing() || !node.held();
  return only_stores(question) && is_all_there_is && why_not_more.code != ErrorCode::fenced;
}
}  // namespace

std::shared_ptr<Recalls::Recall> Recalls::made() {
  auto recall = std::make_shared<Recall>();
  recall->number = ++last_number_;
  return recall;
}

/// Work answers the questions that came before it looked at what there is to store, and those that were told so once.
std::shared_ptr<Recalls::Recall> Recalls::join(const Question& question) {
  std::shared_ptr<Recall> mine;
  {
    const Lock lock(mutex_);
    const auto key = key_of(question);
    const auto is_enough = [&question](const Recall& recall) {
      return question.work != 0 && recall.number >= question.work;
    };
    if (const auto done = succeeded_.find(key); done != succeeded_.end() && is_enough(*done->second)) {
      return done->second;
    }
    auto& line = under_way_[key];
    if (line.first && (line.first->may_be_joined || is_enough(*line.first))) return line.first;
    if (line.first) {
      if (!line.next) line.next = made();
      return line.next;
    }
    mine = line.first = made();
  }
  begin(question);
  return mine;
}

format::Answer Recalls::answer(const Question& question) {
  using format::Answer;
  std::vector<std::shared_ptr<Recall>> all{join({question.kind, question.ino, question.from_open, {}, question.work})};
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
  if (std::ranges::all_of(all, &Recall::succeeded)) return {Answer::Kind::done};
  return {Answer::Kind::busy, all.front()->number};
}

void Recalls::wait() {
  Lock lock(mutex_);
  lock.wait(changed_, [this]() REQUIRES(mutex_) { return under_way_.empty(); });
}

/// Does not block: what has to wait for the store has threads, and what waits for the file's reads and writes has none.
void Recalls::begin(const Question& question) {
  ++begun_;
  auto asked_for = files_.use(question.ino);
  {
    const Lock lock(asked_for->mutex);
    asked_for->was_asked_for = true;
  }
  if (question.kind == Question::Kind::share_locks) {
    return threads_.post([this, question, asked_for = std::move(asked_for)] {
      take_no_more(question);
      end(question, *asked_for, asked_for->locks.share());
    });
  }
  bool keep = false;
  {
    const Lock lock(asked_for->mutex);
    keep = only_stores(question) && asked_for->lease_held && asked_for->writers > 0;
    asked_for->is_shared = asked_for->is_shared || (asked_for->lease_held && question.from_open);
  }
  if (keep) {
    return threads_.post([this, question, asked_for = std::move(asked_for)] { store_as_asked(question, *asked_for); });
  }
  kernel_.write_back_pages(question.ino, [this, question, asked_for = std::move(asked_for)]() mutable {
    auto& gate = asked_for->gate;
    gate.enter_alone([this, question, asked_for = std::move(asked_for)]() mutable {
      threads_.post([this, question, asked_for = std::move(asked_for)] { release_as_asked(question, *asked_for); });
    });
  });
}

/// Later questions wait for the next work.
void Recalls::take_no_more(const Question& question) {
  const Lock lock(mutex_);
  under_way_.at(key_of(question)).first->may_be_joined = false;
}

void Recalls::store_as_asked(const Question& question, FileNode& node) {
  take_no_more(question);
  auto done = node.store_dirty(true);
  if (!done && is_told_what_is_stored(question, node, done.error())) done = {};
  end(question, node, done);
}

/// Also where memory knows of no lease: the asker has read that it is ours, so a step of ours whose outcome we never
/// learnt may have taken it. What is written once the gate is left is for the next question.
void Recalls::release_as_asked(const Question& question, FileNode& node) {
  auto done = node.find_own();
  if (done) done = node.release_to_another();
  if (!done && is_told_what_is_stored(question, node, done.error())) {
    done = {};
  } else if (!done && node.held()) {  // else it is not released, and whoever asked would find it here again
    done = node.release_at_any_price();
  }
  if (done && question.kind == Question::Kind::release_lease) node.give_way();
  take_no_more(question);
  node.gate.leave_alone();
  kernel_.drop_attributes(question.ino);
  kernel_.drop_pages_later(question.ino);
  end(question, node, done);
}

void Recalls::end(const Question& question, const FileNode& node, const Result<>& done) {
  if (!done)
    log::failed(log::Level::error, format::inode_object(node.ino) + ": asked for by another client", done.error());
  bool goes_on = false;
  {
    const Lock lock(mutex_);
    const auto line = under_way_.find(key_of(question));
    const auto ended = std::exchange(line->second.first, std::exchange(line->second.next, nullptr));
    ended->finished = true;
    ended->succeeded = done.has_value();
    if (ended->succeeded) {
      if (succeeded_.size() >= most_remembered) {
        const auto number = [](const auto& one) { return one.second->number; };
        succeeded_.erase(std::ranges::min_element(succeeded_, {}, number));
      }
      succeeded_[key_of(question)] = ended;
    }
    goes_on = line->second.first != nullptr;
    if (!goes_on) under_way_.erase(line);
    changed_.notify_all();
  }
  if (goes_on) begin(question);
}

}  // namespace lccfs
