// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Group commit: one thread runs all transactions that have queued up inside one LMDB transaction, with one sync, and
// then answers them. Each is still all or nothing on its own: what refuses it is found before it changes anything, and
// if LMDB fails in the middle (a full disk), the whole batch is undone and each runs alone.
//
// Any thread; completions are called by the committing thread, without a lock.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "lccfs/object_store.h"
#include "store/local/client.h"
#include "store/local/environment.h"
#include "store/local/metadata_table.h"

namespace lccfs::local {

class Committer {
 public:
  explicit Committer(Environment& environment) : environment_(environment) {}
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  using Read = std::move_only_function<void()>;

  void submit(Step step, MetaTxn txn, ObjectStore::ApplyDone done);
  /// For reads that are ordered after transactions: takes `read` and runs it once those in hand on that object are
  /// done, or, if there are none, leaves it to the caller and answers false.
  bool run_after(const std::string& object, Read& read);

 private:
  struct Item {
    Step step;
    MetaTxn txn;
    ObjectStore::ApplyDone done;
  };
  struct Batch {
    std::vector<Item> items;
    std::vector<Read> reads;
  };

  void serve();
  std::vector<Answer> commit(std::span<const Item> items);
  Result<std::vector<Answer>> commit_together(std::span<const Item> items);
  void finish(Batch batch, std::vector<Answer> answers);

  Environment& environment_;
  unsigned batches_ = 0;  // the thread's own
  Mutex mutex_;
  Batch next_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, unsigned> in_hand_ GUARDED_BY(mutex_);  // by object: transactions not yet committed
  bool serving_ GUARDED_BY(mutex_) = false;
  ThreadPool thread_{1};  // last, so that it ends first
};

}  // namespace lccfs::local
