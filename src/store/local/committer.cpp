// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/committer.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "store/local/client_table.h"

namespace lccfs::local {
namespace {

// Far more than queue up in one sync; it bounds what one LMDB transaction has to hold.
constexpr std::size_t batch_limit = 512;
// How often to look for readers that were killed: they keep freed pages from being used again.
constexpr unsigned batches_per_reader_check = 1024;

/// Remembers within one batch which clients may write.
class Membership {
 public:
  explicit Membership(const Transaction& transaction) : transaction_(transaction) {}

  Result<bool> has(const std::string& id) {
    const auto known = known_.find(id);
    if (known != known_.end()) return known->second;
    LCCFS_TRY(const bool member, is_client(transaction_, id));
    known_.emplace(id, member);
    return member;
  }

 private:
  const Transaction& transaction_;
  std::map<std::string, bool> known_;
};

}  // namespace

Committer::Committer(Environment& environment) : environment_(environment), thread_(&Committer::serve, this) {}

Committer::~Committer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    queued_.notify_one();
  }
  thread_.join();
}

void Committer::submit(Step step, MetaTxn txn, ObjectStore::ApplyDone done) {
  const std::lock_guard lock(mutex_);
  ++in_hand_[txn.object];
  queue_.push_back({std::move(step), std::move(txn), std::move(done)});
  queued_.notify_one();
}

bool Committer::run_behind(const std::string& object, std::move_only_function<void()>& work) {
  const std::lock_guard lock(mutex_);
  if (!in_hand_.contains(object)) return false;
  behind_.push_back(std::move(work));
  queued_.notify_one();
  return true;
}

void Committer::serve() {
  for (;;) {
    Batch batch = take_batch();
    if (batch.items.empty() && batch.behind.empty()) return;
    auto answers = commit(batch.items);
    finish(std::move(batch), std::move(answers));
    if (++batches_ % batches_per_reader_check == 0) environment_.drop_dead_readers();
  }
}

Committer::Batch Committer::take_batch() {
  std::unique_lock lock(mutex_);
  queued_.wait(lock, [this] { return ending_ || !queue_.empty() || !behind_.empty(); });
  Batch batch;
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), batch_limit));
  batch.items.assign(std::move_iterator(queue_.begin()), std::move_iterator(end));
  queue_.erase(queue_.begin(), end);
  if (queue_.empty()) batch.behind = std::exchange(behind_, {});
  return batch;
}

std::vector<Answer> Committer::commit(std::span<const Item> items) {
  if (items.empty()) return {};
  auto together = commit_together(items);
  if (together) return std::move(*together);
  const Error& error = together.error();
  if (items.size() == 1 || error.outcome == Outcome::unknown)
    return std::vector<Answer>(items.size(), Answer(std::unexpected(error)));
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < items.size(); ++i) answers.push_back(commit(items.subspan(i, 1)).front());
  return answers;
}

Result<std::vector<Answer>> Committer::commit_together(std::span<const Item> items) {
  const bool growth_allowed = environment_.keep_reserve();
  LCCFS_TRY(const auto transaction, environment_.begin_write());
  Membership members(*transaction);
  std::vector<Answer> answers;
  bool changed = false;
  for (const Item& item : items) {
    LCCFS_TRY(const bool member, members.has(item.step.client().identity().id));
    if (!member) {
      answers.push_back(fenced_failure());
      continue;
    }
    LCCFS_TRY(auto answer, apply(*transaction, item.txn, growth_allowed));
    changed |= answer.has_value() && !item.txn.mutations.empty();
    answers.push_back(std::move(answer));
  }
  if (changed) LCCFS_CHECK(transaction->commit());
  return answers;
}

void Committer::finish(Batch batch, std::vector<Answer> answers) {
  {
    const std::lock_guard lock(mutex_);
    for (const Item& item : batch.items) {
      const auto object = in_hand_.find(item.txn.object);
      if (--object->second == 0) in_hand_.erase(object);
    }
  }
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    Item item = std::move(batch.items[i]);
    if (!answers[i] && answers[i].error().code == ErrorCode::fenced) item.step.client().bar();
    item.done(std::move(answers[i]));
  }
  for (auto& work : batch.behind) work();
}

}  // namespace lccfs::local
