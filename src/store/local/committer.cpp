// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/committer.h"

#include <utility>

namespace lccfs::local {
namespace {

// How often to look for readers that were killed: they keep freed pages from being used again.
constexpr unsigned batches_per_reader_check = 1024;

}  // namespace

void Committer::submit(Step step, MetaTxn txn, ObjectStore::ApplyDone done) {
  const Lock lock(mutex_);
  ++in_hand_[txn.object];
  next_.items.push_back({std::move(step), std::move(txn), std::move(done)});
  if (!std::exchange(serving_, true)) thread_.post([this] { serve(); });
}

bool Committer::run_after(const std::string& object, Read& read) {
  const Lock lock(mutex_);
  if (!in_hand_.contains(object)) return false;
  next_.reads.push_back(std::move(read));  // it is served: what is in hand is not done
  return true;
}

void Committer::serve() {
  for (;;) {
    Batch batch;
    {
      const Lock lock(mutex_);
      serving_ = !next_.items.empty() || !next_.reads.empty();
      if (!serving_) return;
      std::swap(batch, next_);
    }
    auto answers = commit(batch.items);
    finish(std::move(batch), std::move(answers));
    if (++batches_ % batches_per_reader_check == 0) environment_.drop_dead_readers();
  }
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
  std::vector<Answer> answers;
  bool changed = false;
  for (const Item& item : items) {
    if (!item.step->has_its_file()) {
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
    const Lock lock(mutex_);
    for (const Item& item : batch.items) {
      const auto object = in_hand_.find(item.txn.object);
      if (--object->second == 0) in_hand_.erase(object);
    }
  }
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    Item item = std::move(batch.items[i]);
    if (!answers[i] && answers[i].error().code == ErrorCode::fenced) item.step->bar();
    item.done(std::move(answers[i]));
  }
  for (auto& read : batch.reads) read();
}

}  // namespace lccfs::local
