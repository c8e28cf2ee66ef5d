// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The log of names: changes in directories that are held here, answered and not stored yet (docs/NAMES.md section 5).
// It stores them in batches, one transaction on the directory for the first of its changes, one batch of a directory at
// a time. Any thread; those that answer a Result wait for the store.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "fs/held_directories.h"
#include "fs/removals.h"
#include "instance/instance.h"
#include "txn/namespace_txn.h"

namespace lccfs {

class NameLog {
 public:
  NameLog(Instance& instance, HeldDirectories& held) : instance_(instance), held_(held) {}
  /// What is not stored by then is lost.
  ~NameLog();
  NameLog(const NameLog&) = delete;
  NameLog& operator=(const NameLog&) = delete;

  using Done = std::move_only_function<void()>;
  /// Sees to new files before the store gets these inodes, and calls `done` then; must not block.
  using FinishFiles = std::function<void(std::span<const Ino> inodes, Done done)>;
  /// Before anything is added.
  void finish_files_with(FinishFiles finish) { finish_files_ = std::move(finish); }
  /// Ends what memory has of a file that the store never had, and that has no name any more; must not block.
  using DiscardFile = std::function<void(Ino)>;
  void discard_files_with(DiscardFile discard) { discard_file_ = std::move(discard); }
  /// Hears of each inode that is only this client's, and whose only name is gone from the store; must not block.
  using OwnUnlinked = std::function<void(const Removals::Unlinked&)>;
  /// The same.
  void tell_of_own_unlinked(OwnUnlinked tell) { own_unlinked_ = std::move(tell); }
  /// Whether the removal of an inode's last name is stored, or lost. Neither may block.
  using Unlinked = std::function<void(Ino inode)>;
  void tell_of_removals(Unlinked stored, Unlinked lost) {
    removal_is_stored_ = std::move(stored);
    removal_is_lost_ = std::move(lost);
  }
  /// For an unmount. From then on, with what finds no room goes what was removed after it elsewhere: nobody will try again
  /// when that has made room. The copy is lost, so the original stays.
  void begin_to_end() EXCLUDES(mutex_);

  /// What a change does, beside what its step says.
  struct What {
    std::optional<Ino> named = std::nullopt;           ///< the inode that has a new name
    std::optional<Ino> made = std::nullopt;            ///< that is a new directory
    std::optional<Ino> removed = std::nullopt;         ///< the directory that has none any more
    std::optional<Ino> unlinked = std::nullopt;        ///< the same of another inode
    std::optional<Token> own_unlinked = std::nullopt;  ///< nobody else can find that: the token of its d/ key
    bool removes = false;                              ///< an inode has a name less
    int subdirectories = 0;                            ///< so many more
    std::optional<Ino> attributes_in = std::nullopt;   ///< the directory's own change; where it has its name
  };
  struct Record {
    MetaTxn change;                 ///< on the directory; memory has seen to its guards
    std::vector<std::string> keys;  ///< of the names
    What what;
    std::shared_ptr<const void> kept;  ///< let go when it is stored
  };
  /// The number of the change. nullopt: it is to be done step by step, for memory has still to forget what is lost there,
  /// or the directory has changes of another tenure, or some that will be lost. Never blocks: the mutex of what is held
  /// is held.
  std::optional<std::uint64_t> add(Ino directory, Token tenure, Record record) EXCLUDES(mutex_);
  /// Sends what is there, if that is much. Does not wait.
  void send_if_many(Ino directory) EXCLUDES(mutex_);
  /// Sends all. Does not wait.
  void send_all() EXCLUDES(mutex_);
  /// Waits where too much is not stored yet: for this directory's changes alone, or for its name, as another's may hang, or
  /// fail.
  Result<> wait_for_room(Ino directory) EXCLUDES(mutex_);

  bool is_empty() const { return size_ == 0; }
  /// io: something is lost that no fsync has told of.
  Result<> untold_loss() const EXCLUDES(mutex_);
  bool has(Ino directory) const EXCLUDES(mutex_);
  /// Whether what is logged of the directory gives the inode a name there, or takes its name. nullopt: neither.
  std::optional<bool> leaves_named(Ino directory, Ino inode) const EXCLUDES(mutex_);
  /// Afterwards a new directory has its name in the store, or memory knows that it has lost it: before a step there. io: it
  /// is lost meanwhile.
  Result<> store_name_of_directory(Ino directory) EXCLUDES(mutex_);
  /// Afterwards what adds names, wherever, is stored. io: some of it is lost meanwhile; who asks again is not told.
  Result<> store_additions() EXCLUDES(mutex_);
  /// Afterwards what was logged before is stored, or lost: of that directory; what changes attributes of directories that
  /// have their names there; all.
  Result<> store(Ino directory) EXCLUDES(mutex_);
  Result<> store_attributes_in(Ino directory) EXCLUDES(mutex_);
  Result<> store_all() EXCLUDES(mutex_);
  /// What found no room is lost, with what came after it. false: it is on its way again, or has only waited for another
  /// directory's.
  bool give_up(Ino directory, const Error& why) EXCLUDES(mutex_);
  /// The same of what `store_attributes_in` waits for.
  bool give_up_attributes_in(Ino above, const Error& why) EXCLUDES(mutex_);
  /// The same of all that found no room. false: there is none, or it is on its way again.
  bool give_up_without_room(const Error& why) EXCLUDES(mutex_);
  /// For fsync: it is stored. io: it is lost; told to all that wait, and once afterwards. Of that directory, its own name
  /// included; the last name that the inode was given.
  Result<> sync(Ino directory) EXCLUDES(mutex_);
  Result<> sync_name_of(Ino inode) EXCLUDES(mutex_);
  /// Whether it has something to wait for, or to tell. Does not block.
  bool has_name_to_sync(Ino inode) EXCLUDES(mutex_);

 private:
  struct Logged {
    std::uint64_t number = 0;
    Record record;
  };
  struct Directory {
    Token tenure;
    std::deque<Logged> records = {};
    std::size_t in_flight = 0;    // so many of the first
    std::uint64_t wanted_to = 0;  // what is to be sent
    unsigned failed_tries = 0;    // of its batches, since one was applied, and not for want of space: one a second
    std::optional<std::chrono::seconds> failed_at = std::nullopt;  // the last of these
    std::optional<std::chrono::nanoseconds> without_room_since = std::nullopt;
    bool is_reported = false;                     // that one has failed, since one was applied
    std::uint64_t to_be_tried_again = 0;          // up to here, where one that has failed may have been applied
    std::set<Ino> never_stored = {};              // by that one
    unsigned failures = 0;                        // of these, and of those that it had to wait for
    std::optional<Error> failure = std::nullopt;  // the last
    bool is_urgent = false;                       // what may be sent of it is not held back
    std::uint64_t lost_from = UINT64_MAX;         // what is logged from there on is not sent, and lost after the rest
    std::optional<Ino> waits_for = std::nullopt;  // as blocked_ says
    bool is_wanted() const { return in_flight == 0 && records.front().number <= wanted_to; }
    bool is_only_to_be_lost() const { return in_flight == 0 && records.front().number >= lost_from; }
  };
  struct Lost {
    std::vector<Record> records = {};
    std::vector<std::pair<Ino, Token>> directories = {};  // and their tenures
  };
  struct Batch {
    Ino directory;
    Token tenure;
    std::uint64_t up_to = 0;
    std::vector<std::string> keys = {};
    std::vector<Ino> named = {};  // stored before it is
    std::vector<Ino> removed = {};
    std::set<Ino> unlinked = {};
    std::set<Ino> never_stored = {};  // of these
    bool removes = false;
    int subdirectories = 0;
    bool is_tried_again = false;
    unsigned tries = 0;  // to change that count
    bool was_sent = false;
    std::vector<const MetaTxn*> changes = {};  // of records, which stay until it is answered
    void add(const Logged& logged);
  };
  using Place = std::pair<std::uint64_t, Ino>;  // of a record: its number, and its directory
  using Places = std::map<Ino, std::uint64_t>;  // one for each directory
  struct AwaitedChanges {                       // what somebody waits for who is to be told if it is lost
    Ino directory;
    std::uint64_t up_to = 0;
    bool is_lost = false;
  };
  using Awaiting = std::list<AwaitedChanges>::iterator;

  void want(Ino directory, std::uint64_t up_to) REQUIRES(mutex_);
  std::vector<Batch> take_batches() REQUIRES(mutex_);
  std::optional<Place> added_elsewhere(Ino directory) const REQUIRES(mutex_);
  std::optional<Place> to_be_stored_before(Ino ino, const Logged& logged, const std::optional<Place>& elsewhere) const
      REQUIRES(mutex_);
  bool is_on_its_way(Ino ino) const REQUIRES(mutex_);
  void stop_waiting(Ino ino, Directory& directory) REQUIRES(mutex_);
  std::vector<Ino> blocked_by(Ino directory) const REQUIRES(mutex_);
  void wait_for(Ino ino, Directory& directory, const Place& blocker) REQUIRES(mutex_);
  std::optional<Batch> next_batch(Ino ino, Directory& directory, std::optional<Place>& blocker) REQUIRES(mutex_);
  std::optional<Place> blocker_of(Ino ino, const Directory& directory) const REQUIRES(mutex_);
  void send(std::vector<Batch> batches) EXCLUDES(mutex_);
  bool leave_out_those_never_stored(Batch& batch);
  void store_inodes(Batch batch) EXCLUDES(mutex_);
  std::optional<Batch> before_what_is_refused(const Batch& batch) EXCLUDES(mutex_);
  /// Each does what comes before the step, and then the next of these.
  void send_item(Batch batch) EXCLUDES(mutex_);
  void send_counted(Batch batch) EXCLUDES(mutex_);
  void send_step(Batch batch, const std::optional<txn::SubdirectoryCount>& nsub) EXCLUDES(mutex_);
  void answered(const Batch& batch, const Result<StepResult>& result) EXCLUDES(mutex_);
  std::chrono::seconds this_second() const;
  bool is_lost(Ino directory, const Result<StepResult>& result) const EXCLUDES(mutex_);
  Lost settle(const Batch& batch, const Result<StepResult>& result, bool is_lost, std::vector<Record>& stored)
      EXCLUDES(mutex_);
  void report(Ino directory, const Result<StepResult>& result, bool is_lost, std::size_t how_many) EXCLUDES(mutex_);
  void fail(Ino directory, const Error& error) REQUIRES(mutex_);
  void lose(Ino directory, Lost& lost) REQUIRES(mutex_);
  void lose_one(Ino directory, Lost& lost, std::vector<Ino>& unnamed) REQUIRES(mutex_);
  void lose_with_removals_after(Ino directory, Lost& lost) REQUIRES(mutex_);
  void lose_for_want_of_room(Ino directory, Lost& lost) REQUIRES(mutex_);
  void lose_removals_after(std::uint64_t added, Lost& lost) REQUIRES(mutex_);
  bool is_being_forgotten(const std::optional<Ino>& directory) const REQUIRES(mutex_);
  void forget(const Lost& lost) EXCLUDES(mutex_);
  void leave_to_collector(Ino lost, const std::set<Ino>& parents);
  void tell_of_stored(const Batch& batch, const std::vector<Record>& removals);
  void remove(Ino ino, std::size_t how_many, std::vector<Record>& removed) REQUIRES(mutex_);
  std::uint64_t last() const EXCLUDES(mutex_);
  Result<> wait(Ino directory, std::uint64_t up_to) EXCLUDES(mutex_);
  Result<> wait_for_all(const Places& wanted) EXCLUDES(mutex_);
  Awaiting begin_to_await(Ino directory, std::uint64_t up_to) REQUIRES(mutex_);
  /// Whether some of it was lost meanwhile.
  bool ends_as_lost(Awaiting awaited) EXCLUDES(mutex_);
  /// io: it is lost.
  Result<> wait(Awaiting awaited) EXCLUDES(mutex_);
  /// What is there up to these records.
  void send_up_to(const Places& wanted) EXCLUDES(mutex_);
  Places newest() const EXCLUDES(mutex_);
  /// Where something there cannot be stored for want of room.
  bool only_waits_for_others(Ino directory) const EXCLUDES(mutex_);
  Places changes_of_attributes_in(Ino above) const EXCLUDES(mutex_);

  Instance& instance_;
  HeldDirectories& held_;
  FinishFiles finish_files_;
  DiscardFile discard_file_;
  OwnUnlinked own_unlinked_;
  Unlinked removal_is_stored_, removal_is_lost_;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::map<Ino, Directory> directories_ GUARDED_BY(mutex_);  // those with records
  // Those of which a batch is wanted, and not on its way: each is either to be looked at, or waits for another one.
  std::set<Ino> to_try_ GUARDED_BY(mutex_);
  std::set<std::pair<Ino, Ino>> blocked_ GUARDED_BY(mutex_);  // (what is waited for, what waits)
  std::set<Place> adds_ GUARDED_BY(mutex_);                   // the records that add a name
  std::set<std::pair<Ino, Place>> attributes_
      GUARDED_BY(mutex_);                               // of directories' own: what has their names; the record
  std::map<Ino, Place> unnamed_ GUARDED_BY(mutex_);     // of new directories: the record that names them
  std::map<Ino, Place> last_names_ GUARDED_BY(mutex_);  // of inodes: the record that has named them last
  std::set<Ino> losses_ GUARDED_BY(mutex_);             // directories with changes that were lost; to be told
  std::set<Ino> lost_names_ GUARDED_BY(mutex_);         // inodes whose last name was lost; to be told
  std::list<AwaitedChanges> awaited_ GUARDED_BY(mutex_);
  std::multiset<Ino> losing_ GUARDED_BY(mutex_);  // directories of which memory has still to forget what is lost
  std::uint64_t last_ GUARDED_BY(mutex_) = 0;
  unsigned in_flight_ GUARDED_BY(mutex_) = 0;  // batches
  bool is_ending_ GUARDED_BY(mutex_) = false;
  bool is_unmounting_ GUARDED_BY(mutex_) = false;
  std::atomic<std::size_t> size_ = 0;  // records, and lost ones that memory has still to forget: most callers find none
};

}  // namespace lccfs
