// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The test store: a cluster in memory, and any number of clients of it. Left alone, it applies every step at once, in
// the calling thread, and answers before the call returns. Told so by a client's hook, it holds, repeats, loses and
// cuts steps. Objects may be away for a while, and clients cut off from all of them.
//
// Any thread may call any method; the hook is called without a lock, and may use other clients of the cluster.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "lccfs/clock.h"
#include "lccfs/object_store.h"
#include "scripted/objects.h"

namespace lccfs {

class ScriptedClient;

enum class StepKind { apply, query, read, extents, write, truncate, remove, zero, copy, notify, fence };

struct StepInfo {
  StepKind kind = StepKind::apply;
  std::string object;                     ///< fence: the identity of whom
  std::string step;                       ///< MetaTxn::step; otherwise the kind's name
  const MetaTxn* txn = nullptr;           ///< of an apply; valid in the hook only
  std::chrono::milliseconds time_out{0};  ///< of a notify
  const MetaRead* read = nullptr;         ///< of a query; valid in the hook only
  std::string source{};                   ///< of a copy, whose object is its target
  bool mutates() const;
};

/// What happens to one step. notify and fence know none, the two crashes and fail.
struct Fault {
  enum class Kind {
    none,
    not_applied_and_crash,
    applied_and_crash,
    crash_and_land_later,  ///< not applied; ScriptedClient::land_late_steps applies it, unless this client is fenced
    applied_twice,         ///< the second answer is reported
    run_again_later,       ///< applied; held, and run again when released; the second answer is reported
    hold,                  ///< not applied before it is released
    lost_answer_applied,   ///< answers timed_out, outcome unknown
    lost_answer_not_applied,
    fail,  ///< answers `code`, not applied, definite
  };
  Kind kind = Kind::none;
  ErrorCode code = ErrorCode::io;
};
const char* describe(Fault::Kind kind);

struct StepCounts {
  unsigned applies = 0, queries = 0, reads = 0, extents = 0, writes = 0, truncates = 0, removes = 0, zeros = 0,
           copies = 0, notifies = 0, fences = 0;
  bool operator==(const StepCounts&) const = default;
};

class ScriptedCluster : public std::enable_shared_from_this<ScriptedCluster> {
 public:
  struct Options {
    /// As RADOS does: a fence bars a client from an object only once somebody who knows of the fence has touched it.
    bool lazy_fences = true;
    std::uint32_t page_limit = 1024;
    /// The watches of a crashed client stay until ScriptedClient::lose_watches.
    bool dead_clients_watch = false;
    /// As the local store does: a crashed client is seen to be dead at once.
    bool deaths_are_seen = false;
    std::set<std::string> pools{};  ///< that use_data_pool may name
    std::uint64_t total_bytes = std::uint64_t{1} << 40;
    std::uint64_t metadata_total_bytes = std::uint64_t{1} << 40;  ///< all of it available, whatever there is
    std::optional<std::uint64_t> most_objects = std::nullopt;     ///< said, not enforced: there must be fewer
    std::uint64_t other_objects = 0;                              ///< that are not this volume's, and count there, too
    /// By which notifies end in vain; a watcher that is deaf takes one all its time. nullptr: the machine's, and who is
    /// deaf is counted as silent at once.
    Clock* clock = nullptr;
  };
  /// In place of an object: fences, made and synced.
  static constexpr const char* monitors = "(monitors)";
  /// In place of an object: listings, and how much there is.
  static constexpr const char* all_objects = "(all objects)";

  static std::shared_ptr<ScriptedCluster> make(Options options);
  static std::shared_ptr<ScriptedCluster> make() { return make(Options{}); }
  /// A cluster of its own with the same objects and fences; the clients stay behind, as if they had crashed here.
  std::shared_ptr<ScriptedCluster> clone() const;

  std::shared_ptr<ScriptedClient> new_client();

  /// From now on what is sent to objects that are `away` waits until they are no longer, in the order sent. nullptr:
  /// all are there. Called under the lock.
  using Away = std::function<bool(const std::string& object)>;
  void set_away(Away away);

  /// For tests that look at objects, or damage them: `use` is called under the lock.
  void with_objects(const std::function<void(scripted::Objects&)>& use);

 private:
  friend class ScriptedClient;
  friend class ScriptedWatch;
  struct WatchState;
  using Watches = std::vector<std::shared_ptr<WatchState>>;
  explicit ScriptedCluster(Options options) : options_(std::move(options)) {}

  std::uint64_t newest_fence() const { return fenced_at_.size(); }
  bool barred(const Bytes& identity, const std::string& object) const;
  Watches take_watches(const Bytes& identity, const std::function<bool(const std::string& object)>& chosen);
  void make_deaf(const Bytes& identity, bool deaf);
  void tell(const std::shared_ptr<WatchState>& watch, std::move_only_function<void(WatchHandler&)> what);
  void tell_lost(const Watches& watches, const Error& reason);

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a step was held, or somebody reaches what he did not
  scripted::Objects objects_;
  std::map<std::string, std::uint64_t> fences_known_;  // by object: the newest fence that it was told of
  std::map<Bytes, std::uint64_t> fenced_at_;           // by identity
  std::set<Bytes> crashed_;                            // identities
  std::uint64_t clients_ = 0;
  Watches watches_;
  Away away_;
  std::map<std::uint64_t, ScriptedClient*> living_;                       // by number
  std::map<Bytes, std::vector<std::move_only_function<void()>>> untold_;  // of each client that is cut off
};

/// One client. Its clean end is its destruction, like that of every store.
class ScriptedClient final : public ObjectStore {
 public:
  using Hook = std::function<Fault(const StepInfo&)>;
  ~ScriptedClient() override;

  // -- the script
  void set_hook(Hook hook);
  /// Steps that are held now, oldest first. Later steps of this client on the same object wait behind them.
  std::vector<StepInfo> held() const;
  /// Waits until that many are held; false after a minute of waiting in vain.
  bool wait_for_held(std::size_t count);
  /// Runs the held step at that place, and what waited behind it. Callable from any thread; answers before it returns.
  void release(std::size_t place = 0);
  void release_all();
  /// The same for all; their answers are given by whoever calls what it returns.
  std::move_only_function<void()> run_held();
  /// The client is dead from now on: all it has in flight and all it does later answers `fenced`, outcome unknown.
  /// What it had in flight and not applied may land later.
  void crash();
  bool crashed() const;
  /// Applies what a crash left in flight, where no fence bars it. Returns how many steps were applied.
  unsigned land_late_steps();
  /// Neither notifies nor the loss of watches reach this client's handlers: a process that is stopped.
  void set_deaf(bool deaf);
  /// The store loses all watches of this client, and says so.
  void lose_watches() {
    lapse_watches([](const std::string&) { return true; })();
  }
  /// The store loses its watches on such objects; what is returned says so.
  [[nodiscard]] std::function<void()> lapse_watches(const std::function<bool(const std::string& object)>& on);
  /// Nothing passes between this client and the store: a connection that is away, or a process that stands still. What
  /// either has sent arrives after it, in order.
  void set_cut_off(bool cut_off);
  /// A key that permits all but fencing, from now on.
  void forbid_fencing();

  // -- the record
  StepCounts counts() const;
  std::vector<std::string> trace() const;  ///< "<step> <object>", oldest first
  void reset_record();

  // -- ObjectStore
  void apply_async(MetaTxn txn, ApplyDone done) override;
  void query_async(MetaRead read, QueryDone done) override;
  void read_data(std::string object, std::uint64_t offset, std::span<char> target, ReadDone done) override;
  using ObjectStore::write_data;
  void write_data(std::string object, std::vector<DataPiece> pieces, DataDone done) override;
  void truncate_data(std::string object, std::uint64_t size_bytes, DataDone done) override;
  void remove_data(std::string object, DataDone done) override;
  void zero_data(std::string object, std::uint64_t offset, std::uint64_t size_bytes, DataDone done) override;
  void copy_data(std::string source, std::string target, DataDone done) override;
  void data_extents(std::string object, std::uint64_t offset, std::uint64_t size_bytes, ExtentsDone done) override;
  Result<ListPage> list(std::string cursor) override;
  Result<std::vector<std::string>> list_starts(unsigned parts) override;
  Result<Capacity> capacity() override;
  Result<> use_data_pool(const std::string& name) override;
  Result<std::unique_ptr<Watch>> watch(const std::string& object, std::shared_ptr<WatchHandler> handler) override;
  Result<NotifyReply> notify(const std::string& object, Bytes payload, std::chrono::milliseconds timeout) override;
  Result<Presence> presence(const std::string& object, const Bytes& identity) override;
  Bytes identity() const override { return identity_; }
  Result<> check_may_fence() override;
  Result<> fence(const Bytes& identity) override;
  Result<> sync_fences() override;

 private:
  friend class ScriptedCluster;
  struct Step;
  struct Parked;
  using Answers = std::vector<std::move_only_function<void()>>;  // to be called without the lock
  ScriptedClient(std::shared_ptr<ScriptedCluster> cluster, std::uint64_t number);

  template <class T, class Execute>
  void submit(StepInfo info, Execute execute, std::move_only_function<void(Result<T>)> done);
  Fault begin(const StepInfo& info);
  void send(Step step, Fault fault);
  void release_where(const std::function<bool(std::size_t place)>& chosen);
  void wait_to_reach(std::unique_lock<std::mutex>& lock, const std::string& object);
  void wait_to_hear();
  Result<> control_step(const StepInfo& info, const std::function<Result<>()>& act);
  Error dead_error(const std::string& what) const;
  std::set<std::string> names() const;

  // with the lock held
  void perform(Step step, Fault fault, Answers& answers);
  void run(Step& step);
  void park(Step step, Fault fault, bool held);
  void run_unblocked(Answers& answers);
  void crash(Answers& answers);
  Result<> touch(const std::string& object);
  void tell_of_fences(const std::string& object);
  bool reaches(const std::string& object) const;
  bool reaches(const StepInfo& step) const {
    return reaches(step.object) && (step.source.empty() || reaches(step.source));
  }

  const std::shared_ptr<ScriptedCluster> cluster_;
  const std::uint64_t number_;
  const Bytes identity_;
  // all below is guarded by the cluster's lock
  std::uint64_t fences_known_;  // of all fences, how many this client knows of
  bool dead_ = false;           // crashed, or has learnt that it is fenced
  bool crashed_ = false;
  bool may_fence_ = true;
  bool deaf_ = false;
  Hook hook_;
  std::list<Parked> parked_;
  std::vector<Step> late_;
  StepCounts counts_;
  std::vector<std::string> trace_;
};

}  // namespace lccfs
