// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What memory knows of the directories whose leases are ours (docs/NAMES.md section 4). Under a lease nobody else changes
// names, so what was read since it was taken, and what own steps have changed, is so. Of a name the knowledge of the
// newest version of the directory counts, whichever thread comes with it first; before all what was answered, and is not
// stored yet (name_log.h). Any thread; never blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "lccfs/clock.h"
#include "txn/namespace_txn.h"

namespace lccfs {

class HeldDirectories {
 public:
  using Known = std::optional<txn::Entry>;  ///< nullopt: there is no such name

  /// `forget_names`: to be called when a name in that directory which the kernel keeps may no longer be so, though no own
  /// change of it was answered, and when a tenure ends in which it was given some; by the time the call here returns that
  /// is done. Must not block, nor call back.
  /// `memory_bytes`: of names, about; beyond, those of directories that were not used for longest are forgotten, but for
  /// what is not stored yet.
  explicit HeldDirectories(
      Clock& clock, std::function<void(Ino directory)> forget_names = [](Ino) {}, std::uint64_t memory_bytes = 64 << 20)
      : clock_(clock), forget_names_(std::move(forget_names)), memory_bytes_(memory_bytes) {}

  /// A step that takes the lease is about to be sent. false: there is one already, it is held, or there is no room.
  bool begin(Ino directory, Token tenure) EXCLUDES(mutex_);
  /// That step was applied, and left the directory at that version. false: it is not to be held any more.
  bool take_effect(Ino directory, Token tenure, std::uint64_t version) EXCLUDES(mutex_);
  /// The store says that its names may be written behind.
  void may_write_behind(Ino directory, Token tenure) EXCLUDES(mutex_);
  bool has_room() const EXCLUDES(mutex_);
  /// A directory made here, with its lease: it is known to be empty.
  void born(Ino directory, Token tenure, std::uint64_t version) EXCLUDES(mutex_);
  /// Nothing is known of it from now on, and no name is given. Answers the tenure, which stays until `end`; nullopt: it is not held, nor about
  /// to be any more.
  std::optional<Token> leave(Ino directory) EXCLUDES(mutex_);
  /// Of one that was removed behind the answer: the directory that had its name. nullopt: it was not.
  std::optional<Ino> removed_from(Ino directory) const EXCLUDES(mutex_);
  /// That removal is stored, or lost: then nothing is known of the directory any more.
  void removal_stored(Ino directory) EXCLUDES(mutex_);
  void removal_lost(Ino directory) EXCLUDES(mutex_);
  bool is_removal_stored(Ino directory) const EXCLUDES(mutex_);
  /// A new directory has lost its name before that was stored: it takes no names, as one that was removed.
  void name_lost(Ino directory, Ino parent) EXCLUDES(mutex_);
  /// It is held no more, if it still was in that tenure: nothing is known of it any more, stored or not.
  void end(Ino directory, Token tenure) EXCLUDES(mutex_);
  /// What was not stored of it is lost, and nothing is known of it any more; but for its removal.
  void lost(Ino directory, Token tenure) EXCLUDES(mutex_);
  /// `end` in whatever tenure, unless some of its names are not stored yet: false. true also if it was not held. One that
  /// was removed takes no names, and stays: that the store has it live still, without a name, is known here alone.
  bool end_unless_logged(Ino directory) EXCLUDES(mutex_);
  /// At most so many that were not used for so long, and those whose release has failed. Not one of which the log has
  /// something: that finds no room, maybe, and memory alone knows it. Those that were made here are given another time: no
  /// other client has ever asked for them. Of those that were removed more are worth it: they come fast, and nobody comes
  /// back to them.
  struct Unused {
    std::chrono::nanoseconds taken, made_here;
  };
  std::vector<Ino> unused_for(const Unused& time, std::size_t most, std::size_t most_removed) const EXCLUDES(mutex_);

  /// The tenure that a step on it guards; nullopt: it is not held.
  std::optional<Token> tenure_of(Ino directory) const EXCLUDES(mutex_);
  /// Whether memory knows of that tenure: it is held, about to be, or about to be released.
  bool knows_of(Ino directory, Token tenure) const EXCLUDES(mutex_);
  bool writes_behind(Ino directory) const EXCLUDES(mutex_);
  /// Names that the kernel keeps are used without a word; but it asks for attributes on its way.
  void was_used(Ino directory) EXCLUDES(mutex_);
  /// Whether answers may rest on what was read of it in that tenure.
  bool is_held(Ino directory, Token tenure) const EXCLUDES(mutex_);
  /// Whether to read its first page, once in a tenure: it is held, and no listing of it is known.
  bool begin_first_page(Ino directory) EXCLUDES(mutex_);

  // -- names
  /// Of a read that is about to be sent. What it shows may be kept only under the same tenure, and of a name only if
  /// nothing was in doubt there since.
  struct Ticket {
    Ino directory;
    Token tenure;
    std::uint64_t doubts = 0;
    bool has_unstored = false;  // names that the read need not show
  };
  /// nullopt: it is not held, and nothing may be kept.
  std::optional<Ticket> begin_read(Ino directory) const EXCLUDES(mutex_);
  /// The same for names; also of a directory that is being released, where some are not stored yet: memory knows these,
  /// and keeps no others.
  std::optional<Ticket> begin_read_names(Ino directory) const EXCLUDES(mutex_);
  /// Whether it does so still. If not, what was not stored when the read was sent is stored by now, or lost, and the read
  /// may not show it: another one does. To be asked once what memory knows more than the read was looked up.
  bool still_knows(const Ticket& ticket) const EXCLUDES(mutex_);
  /// The kernel is about to be given that name, of a directory, to keep. false: it is not known here to be so, or others
  /// may change it without asking.
  bool give(const txn::Name& name, Ino named, Token tenure) EXCLUDES(mutex_);
  /// The same by a listing, but for a name that is to leave.
  bool give_listed(const txn::Name& name, Ino named, Token tenure) EXCLUDES(mutex_);
  /// One that the kernel may keep: to be expired. It stays here until that is done, so that a rename which is under way
  /// takes it along. nullopt: there is none any more.
  struct KeptName {
    std::string key, name;
    std::uint64_t number = 0;
  };
  std::optional<KeptName> kept_by_kernel(Ino directory) const EXCLUDES(mutex_);
  void expired(Ino directory, const KeptName& kept) EXCLUDES(mutex_);
  /// Whether the name may go to another directory: the kernel does not keep it, or has asked for it since the last call.
  bool may_leave(const txn::Name& name) EXCLUDES(mutex_);
  void is_asked_for(const txn::Name& name) EXCLUDES(mutex_);
  /// Whether the read has shown that tenure as the store's. If not, nothing is known of the directory any more.
  bool is_confirmed(const Ticket& ticket, const std::optional<Token>& stored) EXCLUDES(mutex_);
  /// As the read showed it, at that version.
  void keep(const Ticket& ticket, const std::string& key, Known known, std::uint64_t version) EXCLUDES(mutex_);
  /// All names with keys after `after`, up to `last` (empty: to the end), as one read showed them.
  struct Page {
    std::string after, last;
    std::uint64_t version = 0;
    std::vector<std::pair<std::string, txn::Entry>> entries;  // by key, in their order
  };
  void keep(const Ticket& ticket, const Page& page) EXCLUDES(mutex_);
  /// From before a step that changes them is sent, until memory says what it left: they are not found here, nor changed.
  /// All are in one directory, whether that is held or not.
  void hide(std::span<const txn::Name* const> names) EXCLUDES(mutex_);
  void show(std::span<const txn::Name* const> names) EXCLUDES(mutex_);
  /// Nothing in it is changed here: from before it is read, to be sealed as empty, until that has ended; and from before a
  /// step on its attributes is sent until memory knows what it left.
  void pause(Ino directory) EXCLUDES(mutex_);
  void resume(Ino directory) EXCLUDES(mutex_);
  class NoChangesBehind {
   public:
    NoChangesBehind(HeldDirectories& held, Ino directory) : held_(held), directory_(directory) {
      held_.pause(directory_);
    }
    ~NoChangesBehind() { held_.resume(directory_); }
    NoChangesBehind(const NoChangesBehind&) = delete;
    NoChangesBehind& operator=(const NoChangesBehind&) = delete;

   private:
    HeldDirectories& held_;
    const Ino directory_;
  };
  /// An own step left the name so, and the directory at that version. 0: not known; the name is in doubt then.
  void changed(const txn::Name& name, Known known, std::uint64_t version) EXCLUDES(mutex_);
  /// A step may have changed it: it is to be read again.
  void doubt(const txn::Name& name) EXCLUDES(mutex_);
  /// A change of names of one directory that is answered before it is stored.
  struct Change {
    const txn::Name& name;
    const Known& expected;
    Known changed;
  };
  struct Tenure {
    Ino directory;
    Token token;
  };
  struct Changes {
    Ino directory;
    Token tenure;
    std::span<const Change> names = {};
    std::optional<Ino> removed = std::nullopt;        ///< a directory that loses its name
    std::optional<Tenure> while_held = std::nullopt;  ///< another that has to be held, too
  };
  /// If it may be written behind, all names are known to be as expected, and the directory that is removed is held here
  /// and known to be empty: `log` puts the change into the log, and answers its number there, if it does; it must not
  /// block. false: nothing has changed.
  bool change(const Changes& changes, const std::function<std::optional<std::uint64_t>()>& log) EXCLUDES(mutex_);
  /// Of these names, what was logged up to that number is stored, and left the directory at that version (0: not known).
  void stored(Ino directory, Token tenure, std::span<const std::string> keys, std::uint64_t up_to,
              std::uint64_t version) EXCLUDES(mutex_);
  using Names = std::vector<std::pair<std::string, format::EntryRecord>>;  ///< by key
  /// The names with keys after `after`, in the order of keys; at least `most`, if there are so many.
  struct Listed {
    Names entries;
    bool is_all = false;  // there are no more
  };
  /// nullopt: it is not held in that tenure, or not all of them are known.
  std::optional<Listed> list(Ino directory, Token tenure, const std::string& after, std::size_t most) EXCLUDES(mutex_);
  /// Some names that are known to be there, in the order of keys after that one: `most` at most, and fewer if they are far.
  Names names_after(Ino directory, Token tenure, const std::string& after, std::size_t most) EXCLUDES(mutex_);
  /// Of names in one directory. nullopt: it is not held in that tenure, or not all of them are known.
  std::optional<std::vector<Known>> find(std::initializer_list<const txn::Name*> names, Token tenure) EXCLUDES(mutex_);
  /// What of these names, by their keys, a read of that version does not show: it was not stored then. `last` empty: all
  /// after the first.
  std::map<std::string, Known> changed_since(std::uint64_t version, Ino directory, Token tenure,
                                             const std::string& after, const std::string& last) EXCLUDES(mutex_);
  /// The same of one name. nullopt: the read shows it.
  std::optional<Known> changed_since(std::uint64_t version, const Ticket& read, const std::string& key)
      EXCLUDES(mutex_);

 private:
  enum class State { is_being_taken, held, leaving, removed };
  struct NameKnown {
    Known known;
    std::uint64_t version = 0;
    std::optional<std::uint64_t> in_doubt;  // since that many doubts; what it was then counts no more
    std::uint64_t logged = 0;               // the number of its last change that is not stored; 0: it is as stored
    bool is_newer_than(std::uint64_t read) const { return logged != 0 || (!in_doubt && version > read); }
  };
  struct Given {
    std::string name;
    std::uint64_t number = 0;                        // no two are the same
    bool is_to_leave = false, is_asked_for = false;  // asked for after it was to leave
  };
  struct Directory {
    Token tenure;
    State state = State::is_being_taken;
    std::uint64_t since = 0;  // the version that the take left
    bool writes_behind = false;
    bool is_made_here = false;  // under this tenure
    bool has_begun_first_page = false;
    Ino removed_from = {};
    bool is_removal_stored = false;
    std::map<std::string, NameKnown> names = {};
    std::size_t logged = 0;                   // of these, how many are not stored yet
    std::string known_up_to = {};             // all names with keys up to this one are known
    bool is_known_whole = false;              // or all there are
    std::map<std::string, Given> given = {};  // names of directories that the kernel may keep, by key
    std::uint64_t doubts = 0;
    std::uint64_t read_anew_since = 0;  // so many doubts: of a read before, nothing is kept, and it may lack names
    std::chrono::nanoseconds used_at{0};
    std::list<Ino>::iterator place = {};                                     // in used_
    std::optional<std::list<Ino>::iterator> place_to_forget = std::nullopt;  // in to_forget_
    bool knows_names() const { return state == State::held || (state == State::leaving && logged != 0); }
  };
  class LockAndTell;  // held_directories.cpp

  const Directory* find(Ino directory) const REQUIRES(mutex_);
  Directory* find(Ino directory) REQUIRES(mutex_);
  bool is_hidden(const txn::Name& name) const REQUIRES(mutex_);
  Given* to_leave(const txn::Name& name) REQUIRES(mutex_);
  bool give_if_known(const txn::Name& name, Ino named, Token tenure) REQUIRES(mutex_);
  /// Whether it can be removed: it is held, and has no name, nor will it get one by a step that is on its way.
  bool is_empty(Ino directory) const REQUIRES(mutex_);
  std::optional<Known> known(const Directory& directory, const txn::Name& name) const REQUIRES(mutex_);
  Directory* held_in(Ino directory, Token tenure) REQUIRES(mutex_);
  Directory* known_in(Ino directory, Token tenure) REQUIRES(mutex_);
  Directory& add(Ino directory, Token tenure) REQUIRES(mutex_);
  void use(Directory& directory) REQUIRES(mutex_);
  void keep_one(Directory& directory, const Ticket& ticket, const std::string& key, Known known, std::uint64_t version)
      REQUIRES(mutex_);
  void put(Directory& directory, const std::string& key, Known known, std::uint64_t version) REQUIRES(mutex_);
  void doubt(Directory& directory, const std::string& key) REQUIRES(mutex_);
  static std::uint64_t bytes_of(const std::string& key);
  NameKnown& at(Directory& directory, const std::string& key) REQUIRES(mutex_);
  void empty(Directory& directory) REQUIRES(mutex_);
  void make_room(Directory& changed) REQUIRES(mutex_);
  void erase(Directory& directory) REQUIRES(mutex_);
  void was_changed(Directory& directory, const txn::Name& name, const Known& known) REQUIRES(mutex_);

  Clock& clock_;
  const std::function<void(Ino directory)> forget_names_;
  const std::uint64_t memory_bytes_;
  mutable Mutex mutex_;
  std::set<Ino> names_are_void_ GUARDED_BY(mutex_);  // in these, within LockAndTell
  std::unordered_map<Ino, Directory> directories_ GUARDED_BY(mutex_);
  std::list<Ino> used_ GUARDED_BY(mutex_);           // the one that was used last comes last
  std::list<Ino> to_forget_ GUARDED_BY(mutex_);      // those with names that are stored; it counts as a use to get some
  std::uint64_t used_bytes_ GUARDED_BY(mutex_) = 0;  // by names of all directories
  std::uint64_t given_ GUARDED_BY(mutex_) = 0;
  std::map<Ino, std::multiset<std::string>> hidden_ GUARDED_BY(mutex_);
  std::multiset<Ino> paused_ GUARDED_BY(mutex_);
};

}  // namespace lccfs
