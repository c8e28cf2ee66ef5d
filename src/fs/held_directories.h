// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What memory knows of the directories whose leases are ours (docs/NAMES.md section 3). Under a lease nobody else changes
// names, so what was read since it was taken, and what own steps have changed, is so. Of a name the knowledge of the
// newest version of the directory counts, whichever thread comes with it first. Any thread; never blocks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "txn/namespace_txn.h"

namespace lccfs {

class HeldDirectories {
 public:
  using Known = std::optional<txn::Entry>;  ///< nullopt: there is no such name

  /// A step that takes the lease is about to be sent. false: there is one already, or it is held.
  bool begin(Ino directory, Token tenure) EXCLUDES(mutex_);
  /// That step was applied, and left the directory at that version. false: it is not to be held any more.
  bool take_effect(Ino directory, Token tenure, std::uint64_t version) EXCLUDES(mutex_);
  /// A directory made here, with its lease: it is known to be empty.
  void born(Ino directory, Token tenure, std::uint64_t version) EXCLUDES(mutex_);
  /// Nothing is known of it from now on. Answers the tenure, which stays until `end`; nullopt: it is not held, nor about
  /// to be any more.
  std::optional<Token> leave(Ino directory) EXCLUDES(mutex_);
  void end(Ino directory, Token tenure) EXCLUDES(mutex_);
  void end(Ino directory) EXCLUDES(mutex_);

  /// The tenure under which it is held; nullopt: it is not.
  std::optional<Token> tenure_of(Ino directory) const EXCLUDES(mutex_);
  /// Whether memory knows of that tenure: it is held, or is about to be.
  bool knows_of(Ino directory, Token tenure) const EXCLUDES(mutex_);

  // -- names
  /// Of a read that is about to be sent. What it shows may be kept only under the same tenure, and of a name only if
  /// nothing was in doubt there since.
  struct Ticket {
    Ino directory;
    Token tenure;
    std::uint64_t doubts = 0;
  };
  /// nullopt: it is not held, and nothing may be kept.
  std::optional<Ticket> begin_read(Ino directory) const EXCLUDES(mutex_);
  /// As the read showed it, at that version.
  void keep(const Ticket& ticket, const txn::Name& name, Known known, std::uint64_t version) EXCLUDES(mutex_);
  /// All names with keys after `after`, up to `last`, were kept by that read (last empty: all).
  void keep_range(const Ticket& ticket, const std::string& after, const std::string& last) EXCLUDES(mutex_);
  /// An own step left the name so, and the directory at that version. 0: not known; the name is in doubt then.
  void changed(const txn::Name& name, Known known, std::uint64_t version) EXCLUDES(mutex_);
  /// A step may change it, or may have: it is to be read again.
  void doubt(const txn::Name& name) EXCLUDES(mutex_);
  /// Of names in one directory. nullopt: it is not held, or not all of them are known.
  std::optional<std::vector<Known>> find(std::initializer_list<const txn::Name*> names) EXCLUDES(mutex_);

 private:
  enum class State { is_being_taken, held, leaving };
  struct NameKnown {
    Known known;
    std::uint64_t version = 0;
    std::optional<std::uint64_t> in_doubt;  // since that many doubts; what it was then counts no more
  };
  struct Directory {
    Token tenure;
    State state = State::is_being_taken;
    std::uint64_t since = 0;  // the version that the take left
    std::map<std::string, NameKnown> names = {};
    bool is_known_whole = false;
    std::string known_up_to = {};  // or else all names with keys up to this one are known
    std::uint64_t doubts = 0;
    std::uint64_t used = 0;
  };

  Directory* held(Ino directory) REQUIRES(mutex_);
  void put(Directory& directory, const std::string& key, Known known, std::uint64_t version) REQUIRES(mutex_);
  void doubt(Directory& directory, const std::string& key) REQUIRES(mutex_);
  NameKnown& at(Directory& directory, const std::string& key) REQUIRES(mutex_);
  void make_room() REQUIRES(mutex_);
  void erase(std::unordered_map<Ino, Directory>::iterator directory) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<Ino, Directory> directories_ GUARDED_BY(mutex_);
  std::size_t names_ GUARDED_BY(mutex_) = 0;  // of all directories
  std::uint64_t uses_ GUARDED_BY(mutex_) = 0;
};

}  // namespace lccfs
