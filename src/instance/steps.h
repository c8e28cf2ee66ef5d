// SPDX-License-Identifier: LGPL-2.1-or-later
//
// An instance's steps and reads: run until they are decided (docs/PROTOCOL.md, rule 5), however long the store takes.
// All that an instance does on metadata goes through here, and so it hears of its own fence.
//
// Any thread. The blocking forms are not for completions. Completions of the others are the store's: short, and must
// not block (lccfs/object_store.h). The end waits for the steps in flight, their completions included, and gives up the
// reads: who has given one up before (a listing, a lookup) does not wait any more, and its object may never answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/completions.h"
#include "base/mutex.h"
#include "instance/numbers.h"
#include "lccfs/object_store.h"

namespace lccfs {

/// What became of a guarded step.
enum class Decided {
  applied,  ///< certainly applied, once
  refused,  ///< certainly not applied: a guard did not hold
};
struct StepResult {
  Decided decided = Decided::applied;
  std::uint64_t version = 0;  ///< of the object after the step; 0: applied, but the version is not known
};

class Steps {
 public:
  using Done = std::move_only_function<void(Result<StepResult>)>;
  using AllDone = std::move_only_function<void(std::vector<Result<StepResult>>)>;

  /// `me` is final before the first guarded step.
  Steps(ObjectStore& store, Numbers& numbers, const InstanceId& me) : store_(store), numbers_(numbers), me_(me) {}
  ~Steps();
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  /// Runs a guarded step on an existing inode object (rule 5): adds the guard "object exists", the guard that l/<me> is
  /// below the step's number, and sets it; keeps one such step in flight per object, the others in the order of these
  /// calls; reads l/<me> back when the answer does not decide. Errors: not_found (no such object), no_space,
  /// quota_exceeded, fenced, io.
  void run_async(MetaTxn txn, Done done);
  /// The same with many, side by side where their objects differ: answers once all are decided, in their order.
  void run_async(std::vector<MetaTxn> txns, AllDone done);
  Result<StepResult> run(MetaTxn txn);

  /// Runs a step that may be done twice, or whose outcome its caller decides otherwise: adds the guard "object exists"
  /// unless it creates the object; an unknown outcome is sent again.
  Result<Applied> run_repeatable(MetaTxn txn);
  /// The same without that guard.
  Result<Applied> apply_until_known(MetaTxn txn);
  void apply_until_known_async(MetaTxn txn, ObjectStore::ApplyDone done);

  /// A read. Waits for its store as long as that takes, but not beyond the end; with `stop`, until a stop is requested.
  /// It answers `interrupted` then. Nothing waits for the store's own answer after that.
  void query_async(MetaRead read, ObjectStore::QueryDone done, const std::stop_token& stop = {});
  Result<MetaSnapshot> query(MetaRead read);

  /// Whether this instance was found to be expired; all it does fails with `fenced` from then on.
  bool fenced() const { return fenced_.load(); }
  Result<> check_not_fenced() const;
  /// From now on it is. Logs it the first time.
  void become_fenced(const std::string& why);
  /// Remembers what an error of the store's tells about this instance.
  Error noted(Error error);

  ObjectStore& store() const { return store_; }

 private:
  /// A guarded step, from the call to its decision.
  struct Guarded {
    Guarded(Numbers& numbers, MetaTxn its_txn, Done its_done)
        : running(numbers), txn(std::move(its_txn)), done(std::move(its_done)) {}
    Numbers::Running running;  // l/<me> is not retired while it may be in flight
    MetaTxn txn;
    Done done;
    std::uint64_t number = 0;  // of the last time it was sent
  };
  void send(std::unique_ptr<Guarded> step);
  void read_until(const std::stop_token& stop, MetaRead read, ObjectStore::QueryDone done);
  void read_back(std::unique_ptr<Guarded> step, Error error);
  void finish(std::unique_ptr<Guarded> step, Result<StepResult> result);

  ObjectStore& store_;
  Numbers& numbers_;
  const InstanceId& me_;
  std::atomic<bool> fenced_{false};
  std::stop_source ends_;  // for reads that have no stop of their own
  InFlight in_flight_;     // steps and reads
  Mutex mutex_;            // never held while the store or a completion is called
  /// Of each object with a guarded step in flight: those that wait for it.
  std::map<std::string, std::deque<std::unique_ptr<Guarded>>> waiting_ GUARDED_BY(mutex_);
};

}  // namespace lccfs
