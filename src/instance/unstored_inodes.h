// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Inodes that were made and answered for before the store has them, and ctimes of inodes that were moved (docs/NAMES.md
// section 5). All that an instance sends to its store passes by here: a step on such an inode, a read of it, and bytes
// written to the data objects of a new one wait until it is stored. So nobody else need know of them. The first data
// object is the exception: its bytes go before the inode, which is then stored as the file is once it was closed.
// Whatever else is done with data does not wait: there is none, or it is in that object. An inode that the store refuses
// can be read, too: its file has a name here, and its bytes are in the write buffer, or in that object.
//
// Any thread. `store` and the destructor block, and those of ObjectStore that block there (lccfs/object_store.h);
// completions are as there, too.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/completions.h"
#include "base/forwarding_store.h"
#include "base/mutex.h"

namespace lccfs {

class UnstoredInodes final : public ForwardingStore {
 public:
  explicit UnstoredInodes(std::shared_ptr<ObjectStore> store) : ForwardingStore(*store), store_(std::move(store)) {}
  /// Waits for what is in flight.
  ~UnstoredInodes() override;
  UnstoredInodes(const UnstoredInodes&) = delete;
  UnstoredInodes& operator=(const UnstoredInodes&) = delete;

  const std::shared_ptr<ObjectStore>& beneath() const { return store_; }
  /// Keeps the step that creates the inode. It is sent when somebody needs it.
  void add(Ino ino, MetaTxn create) EXCLUDES(mutex_);
  /// Changes that step. false: it was sent, or there is none, or `edit` says so.
  bool edit(Ino ino, const std::function<bool(MetaTxn&)>& edit) EXCLUDES(mutex_);
  /// Forgets it: nothing is done with it any more, or it lost its name before. true: the store has nothing of it, nor
  /// will. Else bytes of it are removed, as far as that succeeds. Either way it counts as lost, so that none of those that
  /// are still to be written become an object without an inode, and who opens it finds it gone. If its step is on its way,
  /// it counts as lost once that fails.
  bool forget(Ino ino) EXCLUDES(mutex_);
  /// The same of one whose name is lost: who needs it is told so. Its bytes stay for now.
  bool lose(Ino ino) EXCLUDES(mutex_);
  /// Those that are forgotten count as lost for as long as somebody may write them, and bytes of those whose names are
  /// lost stay for as long as somebody may read them. To be called each second.
  void end_unused(const std::function<bool(Ino)>& is_used) EXCLUDES(mutex_);
  /// Keeps a ctime of an inode that was moved in that directory, and that nobody else knows of: it is stored when somebody
  /// needs the inode. false: it is not kept; there are too many, or a step on the inode is on its way.
  bool add_ctime(Ino ino, Ino directory, TimeSpec ctime) EXCLUDES(mutex_);
  /// The inode is gone.
  void forget_ctime(Ino ino) EXCLUDES(mutex_);
  /// Inodes whose ctimes were there at so many looks before. To be called each second.
  std::vector<Ino> old_ctimes() EXCLUDES(mutex_);
  /// Those moved in that directory (nullopt: in any) whose ctimes are not stored yet, or on their way.
  std::vector<Ino> ctimes_of(std::optional<Ino> directory) const EXCLUDES(mutex_);
  /// Sends these; `done` comes once all were tried.
  void store_ctimes(std::span<const Ino> inodes, DataDone done) EXCLUDES(mutex_) { when_all(inodes, std::move(done)); }
  /// It is in use, by more than its name: it is not forgotten any more, unless it finds no room. false: its name is lost.
  bool need(Ino ino) EXCLUDES(mutex_);
  /// Whether the store has nothing of it, nor will, but for a late run of its creation, which is a collector's.
  bool is_lost(Ino ino) const EXCLUDES(mutex_);
  /// Whether its step was never sent.
  bool is_unsent(Ino ino) const EXCLUDES(mutex_);
  /// The same, and none of its bytes were.
  bool is_untouched(Ino ino) const EXCLUDES(mutex_);
  /// Whether its step has failed, and the store does not have it yet.
  bool is_refused(Ino ino) const EXCLUDES(mutex_);
  /// Whether its step has failed; or was not sent, nor any of its bytes, and nobody needs it.
  bool is_unstored(Ino ino) const EXCLUDES(mutex_);
  /// The store has all of these inodes, or an error says why not: the next that needs one tries again. Ctimes may come
  /// later.
  void when_stored(std::span<const Ino> inodes, DataDone done) EXCLUDES(mutex_);
  /// The version that the step has left. 0: not known, or there is none to send. An error of `definite` outcome: the
  /// store does not have the inode.
  Result<std::uint64_t> store(Ino ino) EXCLUDES(mutex_);
  /// Whether one could not be stored, and is still to be.
  bool is_failing() const { return failed_ != 0; }

  // -- what of ObjectStore may have to wait
  void apply_async(MetaTxn txn, ApplyDone done) override;
  void query_async(MetaRead read, QueryDone done) override;
  using ObjectStore::write_data;
  void write_data(std::string object, std::vector<DataPiece> pieces, DataDone done) override;
  void copy_data(std::string source, std::string target, DataDone done) override;

 private:
  using Stored = Result<std::uint64_t>;  // the version
  using StoredDone = std::move_only_function<void(const Stored&)>;
  struct Unstored {
    MetaTxn step;
    bool creates = true;  // else it sets the ctime of what was moved there:
    Ino directory = {};
    bool was_sent = false;     // an earlier run of it may be under way for ever
    bool is_in_doubt = false;  // the store may have done it: it has not said that there is no such object
    bool has_bytes = false;    // in the first data object, or on their way there
    bool is_in_flight = false;
    bool has_failed = false;
    bool is_lost = false, is_forgotten = false;
    bool is_needed = false;
    std::vector<StoredDone> waiting = {};
    std::vector<Ino> below = {};  // made in it, and on their way once it is stored
  };
  struct Waiting {
    std::vector<StoredDone> done;
    std::vector<Ino> below;
    bool is_empty() const { return done.empty() && below.empty(); }
  };

  struct Ctime {
    Ino directory;
    TimeSpec ctime;
    unsigned looks = 0;
  };
  using Inodes = std::map<Ino, Unstored>;
  static bool leaves_nothing(const Unstored& its) { return !its.was_sent && !its.has_bytes; }
  static bool is_over(const Unstored& its) { return its.is_forgotten && !its.is_in_flight; }
  static bool leaves_lost_bytes(const Unstored& its) {
    return its.is_lost && !its.is_forgotten && !its.is_in_flight && !its.is_in_doubt && its.has_bytes;
  }
  static bool was_refused(const Unstored& its) { return its.has_failed && !its.is_lost; }

  /// Of an object that belongs to one of these. nullopt: it need not wait.
  std::optional<Ino> unstored_of(std::string_view object) const EXCLUDES(mutex_);
  bool was_removed(Ino ino) const EXCLUDES(mutex_);
  bool goes_before_inode(Ino ino, std::string_view object) EXCLUDES(mutex_);
  /// Its directory, where that is as new, is stored before it.
  void when_stored(Ino ino, StoredDone done) EXCLUDES(mutex_);
  void when_all(std::span<const Ino> inodes, DataDone done) EXCLUDES(mutex_);
  /// One that is made; nullptr: there is none.
  static auto* made_in(auto& inodes, Ino ino) {
    const auto found = inodes.find(ino);
    return found != inodes.end() && found->second.creates ? &found->second : nullptr;
  }
  void erase(Inodes::iterator at) REQUIRES(mutex_);
  void end_forgotten(std::span<const Ino> unused) EXCLUDES(mutex_);
  void remove_lost_bytes(std::span<const Ino> unused) EXCLUDES(mutex_);
  void is_not_there(Ino ino) EXCLUDES(mutex_);
  /// As far as that succeeds.
  void remove_first_bytes(Ino ino);
  /// A ctime that was kept is a step from now on. `end`: there is none.
  Inodes::iterator begin_to_store(Ino ino) REQUIRES(mutex_);
  /// What a read of an inode that the store refuses would show, had it been made. nullopt: the error is the answer.
  std::optional<MetaSnapshot> as_refused(Ino ino, const MetaRead& read, const Error& why) const EXCLUDES(mutex_);
  /// Calls `call` once the inode is stored; else `done` with the error.
  template <class T, class Done, class Call>
  void after(Ino ino, Done done, Call call);
  /// The store is still to have it.
  bool is_to_be_made(Ino ino) const REQUIRES(mutex_);
  std::optional<Ino> first_to_send(Ino ino) REQUIRES(mutex_);
  /// What it is to be answered. nullopt: it is sent.
  std::optional<Error> parent_answered(Ino ino, Ino parent, const Stored& stored) EXCLUDES(mutex_);
  std::optional<Error> begin_to_send(Ino ino) EXCLUDES(mutex_);
  void send(Ino ino, MetaTxn create);
  void send_ctime(Ino ino, MetaTxn step);
  void read_back(Ino ino, MetaTxn create, Error error);
  void answered(Ino ino, const Stored& stored) EXCLUDES(mutex_);
  void answer(Ino ino, const Stored& stored, std::deque<std::pair<Ino, Error>>& failed) EXCLUDES(mutex_);
  Waiting next_waiting(Ino ino, const Stored& stored, bool& leaves_bytes) EXCLUDES(mutex_);

  std::shared_ptr<ObjectStore> store_;
  mutable Mutex mutex_;  // held during no call but an edit
  Inodes unstored_ GUARDED_BY(mutex_);
  std::map<Ino, Ctime> ctimes_ GUARDED_BY(mutex_);
  std::atomic<std::size_t> size_ = 0;    // of both: most calls find none
  std::atomic<std::size_t> failed_ = 0;  // of these
  InFlight in_flight_;
};

}  // namespace lccfs
