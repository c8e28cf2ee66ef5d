// SPDX-License-Identifier: LGPL-2.1-or-later
//
// An instance: one store client with a number, a record on Super, a session object and watches (docs/ORDERING.md
// sections 2, 4 and 5). It hands out tokens, inode numbers and step numbers, runs guarded steps until they are decided,
// keeps its part of the reclaim queue, and deals with other instances: asks them, finds out that they are over, fences.
//
// Any thread may call any method; those that return a Result block on the store (`ask` and `ensure_over` on other
// instances too: never call them from a thread that answers questions).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "format/records.h"
#include "instance/absence.h"
#include "instance/object_locks.h"
#include "instance/processes.h"
#include "instance/roll_call.h"
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

/// What became of a guarded step.
enum class Decided {
  applied,  ///< certainly applied, once
  refused,  ///< certainly not applied: a guard did not hold
};
struct StepResult {
  Decided decided = Decided::applied;
  std::uint64_t version = 0;  ///< of the object behind the step; 0: applied, but the version is not known
};

class Instance {
 public:
  /// Answers another instance's question; runs on threads of the instance's that do nothing else. May do steps on the
  /// store; must not ask other instances.
  using QuestionHandler = std::function<format::Answer(const format::Question&)>;
  /// Whether an inode is open here, or an open of it has begun. Called by the same threads; must not block on the
  /// store.
  using OpenProbe = std::function<bool(Ino)>;

  /// While it lives, no token, step number or queue item drawn since is over, nor is any directory item that was relied
  /// on (section 2). Every operation that leaves traces is inside one. Any thread may end it.
  class Operation {
   public:
    explicit Operation(Instance& instance);
    ~Operation();
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

   private:
    Instance& instance_;
    std::multiset<std::uint64_t>::const_iterator place_;
  };

  /// Start: number, record, session object, watches, own record read again, inode numbers and their intent.
  static Result<std::unique_ptr<Instance>> start(std::shared_ptr<ObjectStore> store, Clock& clock,
                                                 const InstanceOptions& options);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  /// The clean end; the caller has nothing dirty, no lease and nothing in flight.
  Result<> end();

  InstanceId id() const { return id_; }
  ObjectStore& store() const { return *store_; }
  Clock& clock() const { return clock_; }
  const format::SuperRecord& super() const { return super_; }
  bool read_only() const { return read_only_; }
  /// false: a read-only one that may write nothing. Nobody knows of it, nor asks it what it has open.
  bool recorded() const { return recorded_; }

  /// A new token of this instance.
  Token next_token() { return {id_, next_number_.fetch_add(1)}; }

  /// Runs a guarded step on an existing inode object (rule 5): adds the guard "object exists", the guard that l/<me> is
  /// below the step's number, and sets it; keeps one such step in flight per object; reads l/<me> back when the answer
  /// does not decide. Errors: not_found (no such object), no_space, quota_exceeded, fenced, io.
  Result<StepResult> run(MetaTxn txn);

  /// Runs a step that may be done twice, or whose outcome its caller decides otherwise: adds the guard "object exists"
  /// unless it creates the object; an unknown outcome is sent again.
  Result<Applied> run_repeatable(MetaTxn txn);

  /// A read. Also learns of fences: `fenced` when this client is.
  Result<MetaSnapshot> query(MetaRead read) const;
  /// The same; `done` as in lccfs/object_store.h. It may come when the instance is gone.
  void query_async(MetaRead read, ObjectStore::QueryDone done) const;
  objects::Query reader() const;

  /// An inode number nobody has had; covered by a range intent that is durable, until the caller's Operation ends. By
  /// then the number is unused, its inode is seen removed or has a name for certain, or it is left to the collector.
  Result<Ino> allocate_ino();
  /// An inode of this instance's that may exist without a name.
  void leave_to_collector(Ino ino);

  // -- the reclaim queue (section 5): one write, durable when it returns
  Result<> log_items(const std::vector<format::QueueItem>& items);
  /// Logs the directory item unless one is relied on already. Good for as long as the caller's Operation lives.
  Result<> rely_on_directory(Ino directory);
  /// The items that rmdir and a replacing rename of a directory need, in one write: inode item, and directory item if
  /// none is relied on already. Good for as long as the caller's Operation lives.
  Result<> log_inode_and_directory(Ino inode, Ino directory);
  /// This instance has removed it: the step numbers in it go with it, and those in others are not forgotten for its
  /// sake.
  void directory_is_gone(Ino directory);

  // -- fences and other instances
  /// To be called with an inode's `fence` before its data is read or its lease taken: syncs fences if that one is new.
  Result<> see_fence(std::uint64_t number);
  /// The fence counter's value that a take-over writes into `fence`; every fence that `ensure_over` relied on is in it.
  std::uint64_t newest_fence() const { return fences_seen_.load(); }
  enum class AskResult {
    done,
    busy,
    silent,  ///< it watches, and did not answer in time
    nobody,  ///< nobody watches there
  };
  Result<AskResult> ask(InstanceId whom, const format::Question& question,
                        std::chrono::milliseconds time_out = answer_timeout);
  enum class Seen { over, watching, absent };
  /// One look at that instance. Fences it if it is gone: proven dead, or absent in all of this instance's looks of a
  /// minute (absence.h; a read-only one fences nobody). Behind `over` fences are synced: every object is to be read
  /// anew, and nothing of that instance's can change what is read.
  Result<Seen> look_at(InstanceId whom);
  /// The same: is it over?
  Result<bool> ensure_over(InstanceId whom);
  /// Fences a live instance (gone, or silent for too long).
  Result<> evict(InstanceId whom);
  /// To be called about once a second: sees to it that the store may fence those who are here now (ObjectStore::fence).
  /// Does not block.
  void look_around();

  /// Asks all instances how far they have come, and which of these inodes they have open. Whoever answers lets go of
  /// the directory items under which nothing runs. Looks again and again at who is silent and does not watch, until
  /// each is seen or gone: then it is fenced. That takes a minute or so; stopped, it leaves them silent.
  Result<Roll> call_roll(const std::vector<Ino>& inodes, const std::stop_token& stop = {});
  /// When another instance called the roll last (Clock::elapsed); nullopt: never.
  std::optional<std::chrono::nanoseconds> last_roll_call() const;

  /// Both return when the old handler is no longer running. Without a probe nothing is open here.
  void set_question_handler(QuestionHandler handler);
  void set_open_probe(OpenProbe probe);

  /// Whether this instance was found to be over; all it does fails with `fenced` from then on.
  bool fenced() const { return fate_->fenced.load(); }

 private:
  class SessionWatch;
  Instance(std::shared_ptr<ObjectStore> store, Clock& clock);

  // instance.cpp: start and end
  Result<> read_super();
  Result<std::uint64_t> take_numbers(std::uint64_t count);
  Result<> write_record(const InstanceOptions& options);
  Result<> set_watches();
  Result<> set_watch(const std::string& object);
  Result<bool> own_record_is_live();
  void set_watch_again(const std::string& object);
  Result<> remove_step_numbers();
  Result<bool> queue_is_empty();
  // answers.cpp
  std::optional<format::Answer> answer(const format::Question& question);
  format::RollReply answer(const format::RollCall& call);
  std::uint64_t let_go_of_directories();
  template <class Handler>
  std::shared_ptr<const Handler> enter_handler(const std::shared_ptr<const Handler>& handler);
  void leave_handler();
  // steps.cpp
  Result<Applied> apply_until_known(const MetaTxn& txn);
  Result<bool> step_was_applied(const std::string& object, std::uint64_t number);
  // queue.cpp
  enum class Ranges { used_up, all };
  Result<> drop_range_intents(Ranges which);
  void note_handed_out(Ino ino);
  void note_reliance(Ino directory, std::uint64_t item);
  bool already_relied_on(Ino directory);
  // others.cpp
  void begin_looks_anew();
  struct RecordOnSuper {
    std::optional<format::InstanceRecord> record;
    Bytes raw;
    std::uint64_t fences = 0;
  };
  Result<RecordOnSuper> read_record(InstanceId whom);
  Result<> sync_fences(std::uint64_t number);
  enum class Standing { watching, absent, gone };
  Result<Standing> look_for(InstanceId whom, const format::InstanceRecord& record);
  Result<> fence_the_gone(Roll& roll, const std::stop_token& stop);
  Result<Seen> look_again_at(const Member& member);
  bool refusal_is_news(InstanceId whom);

  // constant once started
  std::shared_ptr<ObjectStore> store_;
  Clock& clock_;
  const Processes* processes_ = nullptr;
  format::SuperRecord super_;
  InstanceId id_;
  bool read_only_ = false;
  bool recorded_ = true;
  Bytes record_;  // as written on Super

  std::atomic<std::uint64_t> next_number_{1};
  std::atomic<std::uint64_t> fences_seen_{0};
  /// Apart: answers that nobody waits for any more may come when the instance is gone.
  struct Fate {
    InstanceId id;
    std::atomic<bool> fenced{false};
    void become_fenced(const std::string& why);
    /// Remembers what an error tells about this instance.
    Error noted(Error error);
  };
  const std::shared_ptr<Fate> fate_ = std::make_shared<Fate>();

  ObjectLocks step_locks_;  // one guarded step in flight per object

  std::mutex numbers_mutex_;  // guards the inode numbers at hand
  Ino next_ino_, end_ino_;

  struct ReliedOn {
    std::uint64_t item = 0;       // its number in the queue
    std::uint64_t last_used = 0;  // the next number when an operation relied on it last
  };
  std::mutex queue_mutex_;  // guards what is running, and what stands in the own queue
  std::multiset<std::uint64_t> running_;
  struct Range {
    std::uint64_t item = 0;  // its number in the queue
    Ino begin, end;
    std::optional<std::uint64_t> used_up;  // the next number when the last of it was handed out
    bool kept_to_the_end = false;          // some of it was handed out to no operation
    bool kept = false;                     // one of its inodes may have no name, and no item of its own
  };
  std::vector<Range> ranges_;
  std::map<Ino, ReliedOn> directories_relied_on_;
  std::vector<ReliedOn> let_go_of_;  // by a roll call, and perhaps still relied on
  /// Directories that were relied on at any time: l/<me> is removed there at the end. Bounded: it may stay elsewhere.
  static constexpr std::size_t most_directories_to_tidy = 1024;
  std::set<Ino> directories_to_tidy_;

  std::mutex absences_mutex_;  // guards the three below
  Absences absences_;
  std::map<InstanceId, std::chrono::nanoseconds> refusals_told_;
  std::optional<std::chrono::nanoseconds> looked_around_;

  mutable std::mutex handler_mutex_;  // guards the handlers, and how many questions they are answering
  std::condition_variable handler_idle_;
  unsigned handlers_running_ = 0;
  std::shared_ptr<const QuestionHandler> question_handler_;
  std::shared_ptr<const OpenProbe> open_probe_;
  std::optional<std::chrono::nanoseconds> last_roll_call_;

  std::mutex watches_mutex_;  // guards both below
  bool ending_ = false;
  struct OwnWatch {
    std::shared_ptr<SessionWatch> handler;
    std::unique_ptr<Watch> watch;
  };
  std::map<std::string, OwnWatch> watches_;
  std::array<std::mutex, 2> watch_again_mutexes_;  // one thread sets a watch again: that on Super, that on the session
  ThreadPool question_threads_{256};
  ThreadPool roll_threads_{16};  // a roll call must not wait behind questions, which wait for the store
  ThreadPool watch_threads_{4};  // a lost watch must not wait behind questions
};

}  // namespace lccfs
