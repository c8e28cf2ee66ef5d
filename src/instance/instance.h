// SPDX-License-Identifier: LGPL-2.1-or-later
//
// An instance: one store client with a number, a record on Super, a session object and watches (docs/PROTOCOL.md
// sections 2, 4 and 5). What it can do is in its parts: numbers.h, steps.h, queue.h, answers.h, others.h and watches.h
// say what the methods here promise.
//
// Any thread may call any method. Those that return a Result block on the store, but for `check_not_fenced`, and so
// does `leave_to_collector`; all `set_` wait for calls of the old function. `ask`, `look_at`, `ensure_expired`, `evict`
// and `poll_liveness` wait for other clients, too, for an answer or until one is fenced: never call them from a thread
// that answers questions or polls (docs/ARCHITECTURE.md says what the caller may hold). All others return at once.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "format/records.h"
#include "instance/answers.h"
#include "instance/asked_holders.h"
#include "instance/losses.h"
#include "instance/numbers.h"
#include "instance/others.h"
#include "instance/queue.h"
#include "instance/steps.h"
#include "instance/unstored_inodes.h"
#include "instance/watches.h"
#include "lccfs/clock.h"
#include "lccfs/object_store.h"
#include "objects/object.h"

namespace lccfs {

struct InstanceOptions {
  std::string mount_id;
  bool read_only = false;    ///< record, session object and watches are all it writes; if it may not, nothing
  bool makes_inodes = true;  ///< false (a collector): takes no inode numbers before the first is wanted
  const Processes* processes = &system_processes();
};

class Instance {
 public:
  /// While it lives, no token, step number or queue item drawn since is retired, nor is any directory item that was
  /// relied on (docs/PROTOCOL.md section 2). Every operation that leaves traces is inside one. Any thread may end it.
  class Operation : public Numbers::Running {
   public:
    explicit Operation(Instance& instance) : Running(instance.numbers_) {}
  };

  /// Start: number, record, session object, watches, own record read again, inode numbers and their intent.
  static Result<std::unique_ptr<Instance>> start(std::shared_ptr<ObjectStore> store, Clock& clock,
                                                 const InstanceOptions& options);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  /// The clean end; the caller has nothing dirty, no lease and nothing in flight.
  Result<> end();

  InstanceId id() const { return me_.id; }
  ObjectStore& store() const { return *store_; }
  /// For what may outlive this instance: the store beneath, without the inodes that it does not have yet.
  std::shared_ptr<ObjectStore> shared_store() const { return store_->beneath(); }
  UnstoredInodes& unstored() const { return *store_; }
  Clock& clock() const { return clock_; }
  const format::SuperRecord& super() const { return super_; }
  bool read_only() const { return me_.read_only; }
  /// false: a read-only one that may write nothing. No other knows of it, nor asks it what it has open.
  bool recorded() const { return me_.recorded; }
  bool fenced() const { return steps_.fenced(); }
  Result<> check_not_fenced() const { return steps_.check_not_fenced(); }

  /// A new token of this instance.
  Token next_token() { return {me_.id, numbers_.next()}; }

  Losses& losses() { return losses_; }

  // -- steps.h
  void run_async(MetaTxn txn, Steps::Done done) { steps_.run_async(std::move(txn), std::move(done)); }
  void run_async(std::vector<MetaTxn> txns, Steps::AllDone done) { steps_.run_async(std::move(txns), std::move(done)); }
  Result<StepResult> run(MetaTxn txn) { return steps_.run(std::move(txn)); }
  Result<Applied> run_repeatable(MetaTxn txn) { return steps_.run_repeatable(std::move(txn)); }
  void query_async(MetaRead read, ObjectStore::QueryDone done) { steps_.query_async(std::move(read), std::move(done)); }
  Result<MetaSnapshot> query(MetaRead read) { return steps_.query(std::move(read)); }
  // -- unstored_inodes.h
  Result<std::uint64_t> store_inode(Ino ino) {
    auto stored = store_->store(ino);
    if (!stored) stored = std::unexpected(steps_.noted(std::move(stored).error()));
    return stored;
  }
  void when_stored(std::span<const Ino> inodes, ObjectStore::DataDone done) {
    store_->when_stored(inodes, [this, done = std::move(done)](Result<> stored) mutable {
      if (!stored) stored = std::unexpected(steps_.noted(std::move(stored).error()));
      done(std::move(stored));
    });
  }
  /// query_async as a function, for as long as no stop is requested (steps.h). Not to be called once the instance ends.
  objects::Query reader(std::stop_token stop = {}) {
    return [this, stop = std::move(stop)](MetaRead read, ObjectStore::QueryDone done) {
      steps_.query_async(std::move(read), std::move(done), stop);
    };
  }

  // -- queue.h
  Result<Ino> allocate_ino() { return queue_.allocate_ino(); }
  void leave_to_collector(Ino ino) { queue_.leave_to_collector(ino); }
  void leave_to_collector_async(Ino ino) { queue_.leave_to_collector_async(ino); }
  void keep_range_of(Ino ino) { queue_.keep_range_of(ino); }
  Result<> log_items(const std::vector<format::QueueItem>& items) { return queue_.log_items(items); }
  Result<> rely_on_directory(Ino directory) { return queue_.rely_on_directory(directory); }
  void rely_on_directory_async(Ino directory, ObjectStore::DataDone done) {
    queue_.rely_on_directory_async(directory, std::move(done));
  }
  Result<> log_inode(Ino inode) { return queue_.log_inode(inode); }
  Result<> log_inode_and_directories(Ino inode, std::span<const Ino> directories) {
    return queue_.log_inode_and_directories(inode, directories);
  }
  void directory_is_gone(Ino directory) { queue_.directory_is_gone(directory); }

  // -- answers.h
  using QuestionHandler = Answers::QuestionHandler;
  using OpenProbe = Answers::OpenProbe;
  /// All return when the old one is no longer running.
  void set_question_handler(QuestionHandler handler) { answers_.question_handler.set(std::move(handler)); }
  void set_missed_handler(std::function<void()> handler) { answers_.missed_handler.set(std::move(handler)); }
  void set_open_probe(OpenProbe probe) { answers_.open_probe.set(std::move(probe)); }
  std::optional<std::chrono::nanoseconds> last_poll() const { return answers_.last_poll(); }

  // -- others.h
  using AskResult = Others::AskResult;
  using Seen = Others::Seen;
  Result<> see_fence(std::uint64_t number) { return others_.see_fence(number); }
  std::uint64_t newest_fence() const { return others_.newest_fence(); }
  Result<Others::Asked> ask(InstanceId whom, const format::Question& question,
                            std::chrono::milliseconds time_out = answer_timeout) {
    return others_.ask(whom, question, time_out);
  }
  Result<Seen> look_at(InstanceId whom) { return others_.look_at(whom); }
  Result<Seen> look_at_record(InstanceId whom) { return others_.look_at_record(whom); }
  /// The same: fences it if it is gone. true: it is expired, and fences are synced. false: it may live.
  Result<bool> ensure_expired(InstanceId whom);
  Result<> evict(InstanceId whom) { return others_.evict(whom); }
  Result<bool> fence_if_seen_lately(InstanceId whom, std::chrono::nanoseconds seen_at) {
    return others_.fence_if_seen_lately(whom, seen_at);
  }
  void look_around() { others_.look_around(); }
  AskedHolders& asked_holders() { return asked_holders_; }
  using Turn = Others::Turn;
  Result<PollResult> poll_liveness(const std::vector<Ino>& inodes, const std::stop_token& stop = {},
                                   Turn turn = Turn::takes) {
    return others_.poll_liveness(inodes, stop, turn);
  }

 private:
  Instance(std::shared_ptr<ObjectStore> store, Clock& clock);
  Result<> read_super();
  Result<> write_record(const InstanceOptions& options);
  Result<> add_record();

  // final once started
  const std::unique_ptr<UnstoredInodes> store_;
  Clock& clock_;
  Self me_;
  format::SuperRecord super_;
  Bytes record_;  // as written on Super
  Losses losses_;
  AskedHolders asked_holders_;

  // each uses some of those above it
  Numbers numbers_;
  Steps steps_{*store_, numbers_, me_.id};
  OwnQueue queue_{steps_, numbers_, clock_, me_.id};
  Answers answers_{queue_, clock_, me_.id};
  Others others_{steps_, answers_, clock_, me_};
  OwnWatches watches_{steps_, answers_, others_, clock_, me_};
};

}  // namespace lccfs
