// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Inodes and entries: from memory where an operation may begin with that, or read; and what this client's own steps
// change in memory. Any thread; what answers a Result may read the store.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "format/object_names.h"
#include "fs/directory_leases.h"
#include "fs/inodes.h"
#include "fs/inodes_as_read.h"
#include "fs/metadata_cache.h"
#include "instance/instance.h"
#include "txn/namespace_txn.h"

namespace lccfs {

/// Entries of one directory, as memory holds them or as one read showed them.
struct Entries {
  bool fresh = false;
  std::shared_ptr<const Inode> directory;  // nullptr: memory holds the entries, but not the directory
  std::vector<std::optional<txn::Entry>> found;
  /// Of those, the ones that stand there with a mark: who would change something there settles it first. What has moved
  /// away is not found.
  std::vector<std::pair<const txn::Name*, txn::Entry>> marked;
};

/// A page of a directory's entries, as one read shows them.
KeyRange entries_after(const std::string& key);

/// What an operation has found under a name, and expects there still.
struct ExpectedEntry {
  const txn::Name& name;
  const std::optional<txn::Entry>& entry;
};
bool as_expected(const std::map<std::string, Bytes>& keys, std::span<const ExpectedEntry> expected);

class Metadata {
 public:
  Metadata(Instance& instance, DirectoryLeases& leases)
      : names(instance.clock()),
        inodes(instance.clock(), leases.held),
        instance_(instance),
        leases_(leases),
        as_read_(instance.clock()) {}

  txn::Name name_in(Ino directory, const std::string& text) const { return {instance_.super().uuid, directory, text}; }

  // -- inodes
  /// nullptr: not in memory.
  std::shared_ptr<const Inode> in_memory(Ino ino);
  /// Of a directory that is held here, for an answer. nullptr: as above.
  std::shared_ptr<const Inode> held_directory(Ino ino);
  /// Of an inode that nobody else has come by, for an answer. nullopt: it may be shared, or is not in memory.
  std::optional<Inode> unshared(Ino ino);
  /// Reads the inode; memory holds it from then on.
  Result<Inode> read(Ino ino, const InodeParts& parts = {});
  /// The same. `stale`: it is gone.
  Result<Inode> read_existing(Ino ino, const InodeParts& parts = {});
  /// The same, but only a directory.
  Result<Inode> read_directory(Ino ino, const InodeParts& parts);
  /// From memory, else read. `stale`: it is gone.
  Result<std::shared_ptr<const Inode>> existing(Ino ino);
  /// A read that is under way: of an inode that was read before, of its version alone.
  struct ReadAhead {
    Ino ino;
    InodeCache::Ticket ticket;
    Awaited<Result<Inode>> inode = {};
    std::shared_ptr<const Inode> as_read = nullptr;
    Awaited<Result<MetaSnapshot>> version = {};
  };
  ReadAhead read_ahead(Ino ino);
  /// 1 read more if it has changed since it was read before.
  Result<Inode> finish(ReadAhead& ahead);
  /// Both without waiting, of an inode that is no directory: the completion calls `done`. nullopt: it has changed since it
  /// was read before, or cannot be read now.
  void read_at_once(Ino ino, std::move_only_function<void(std::optional<Inode>)> done,
                    const std::stop_token& stop = {});
  /// Reads these, 32 at once. Left out are those that are gone, and those that the store does not show within a second.
  std::map<Ino, Inode> read_many(const std::vector<Ino>& wanted);
  /// Also where it has lost its name but is not marked dead yet: then its parent knows (1 read, only if sealed).
  Result<bool> was_removed(const Inode& view);
  /// `stale`: it was.
  Result<> check_not_removed(const Inode& view);

  // -- entries
  /// Of one directory that is held here. nullopt: it is not, or memory does not know all of them.
  std::optional<Entries> find_held(std::initializer_list<const txn::Name*> wanted);
  /// How far memory is trusted.
  enum class Trust {
    in_nothing,  ///< read
    in_leases,   ///< what is held here is so: an answer may rest on it
    in_hints,    ///< also in what was seen within a second: a guarded step may be tried
  };
  /// A directory with keys of its names, and how memory may keep these.
  struct NamesRead {
    Inode view;
    std::optional<HeldDirectories::Ticket> kept_as;
  };
  /// read_directory, for an answer about names: a holder that may have answered more than is stored is asked first. (A
  /// read-only mount fences none that says nothing: it then answers what is stored.)
  Result<NamesRead> read_names(Ino directory, const InodeParts& parts);
  /// What a read of that directory shows, with what is answered and not stored: it may have found no room. nullopt: there
  /// is nothing to add.
  std::optional<KeyPage> as_answered(const HeldDirectories::Ticket& ticket, const std::string& after,
                                     const KeyPage& keys, std::uint64_t version);
  /// A page of a listing, as one read showed it: a directory that is held here need not be read for these again.
  void keep_entries(const HeldDirectories::Ticket& ticket, std::string after, const KeyPage& keys,
                    std::uint64_t version);
  /// Those of these names, of one directory; from memory if that is trusted and has them all. `stale`: the directory was
  /// removed. `fresh`: they are an answer.
  Result<Entries> find(std::initializer_list<const txn::Name*> wanted, Trust trust);
  /// An entry as it was read just now: what stands there by the rule for readers of marks. nullopt: it has moved away.
  Result<std::optional<txn::Entry>> standing(const txn::Name& name, txn::Entry entry);
  /// Whether the names, read again, are what they were (rule 4).
  Result<bool> unchanged(std::span<const ExpectedEntry> expected);

  // -- own steps
  /// Around a step that changes these names of one directory, until memory has been told what it left. Meanwhile they
  /// are read: the store may have the change, and others may have seen it there.
  class Changing {
   public:
    Changing(Metadata& metadata, std::vector<const txn::Name*> names)
        : held_(metadata.leases_.held), names_(std::move(names)) {
      held_.hide(names_);
    }
    ~Changing() { held_.show(names_); }
    Changing(const Changing&) = delete;
    Changing& operator=(const Changing&) = delete;

   private:
    HeldDirectories& held_;
    const std::vector<const txn::Name*> names_;
  };
  /// Whether the directory that was found is held so that changes of its names may be answered before they are stored.
  /// Waits where too much is not stored yet.
  Result<bool> may_change_behind(const Entries& entries);
  /// Such a change. Its step is on a directory that was found, and on these names in it.
  struct ChangeBehind {
    const Entries& entries;
    std::vector<HeldDirectories::Change> names;
    MetaTxn step;
    TimeSpec time;
    NameLog::What what;
    std::shared_ptr<const void> kept;  ///< let go when it is stored
  };
  /// If that may be. false: it has to be done step by step, for things have changed.
  bool change_behind(ChangeBehind change);
  /// The same of the attributes of a directory that is held here, and unshared: `edit` changes them, and answers the
  /// step. nullopt: it cannot say.
  using EditDirectory = std::function<std::optional<MetaTxn>(Inode&)>;
  Result<bool> change_directory_behind(Ino directory, const EditDirectory& edit,
                                       const std::shared_ptr<const void>& kept);
  /// The same of the ctime of a directory that is moved in another one, if changes of it are not stored yet: these would
  /// set an older one later.
  bool change_ctime_behind(Ino moved, Ino home, TimeSpec time, const std::shared_ptr<const void>& kept);
  /// Instance::run for a step of an operation. `stale`: its object is gone.
  Result<StepResult> run(MetaTxn txn);
  /// The same of what a directory's lease covers, and that changes these names in it: refused while another client holds
  /// it. Unless it was applied, memory knows of these names no more.
  Result<StepResult> run_on_directory(MetaTxn txn, std::initializer_list<const txn::Name*> changed);
  /// By such a step, after which the directory has that version.
  void name_changed(const txn::Name& name, EntryCache::Hint changed, std::chrono::nanoseconds sent,
                    std::uint64_t version);
  /// A step may change it, or may have.
  void name_in_doubt(const txn::Name& name);
  /// A step on a directory's entries was applied, and left it at that version.
  void directory_changed(Ino directory, std::uint64_t version, TimeSpec time,
                         const std::optional<txn::SubdirectoryCount>& nsub = std::nullopt);

  EntryCache names;
  InodeCache inodes;

 private:
  Result<std::optional<Entries>> find_by_a_read(std::initializer_list<const txn::Name*> wanted);
  Result<InodeCache::Ticket> begin_read(Ino ino);
  Result<Inode> remember(const InodeCache::Ticket& ticket, Ino ino, Result<Inode> read);
  Inode remember_as_read(const InodeCache::Ticket& ticket, const Inode& as_read);

  Instance& instance_;
  DirectoryLeases& leases_;
  InodesAsRead as_read_;
};

/// For errors: the directory's object, and the name.
std::string describe(const txn::Name& name);
Error no_entry(const txn::Name& name);

/// Whether a step that failed with this error is certainly not applied. (Others may have been, by an earlier run.)
bool certainly_not_applied(const Error& error);

}  // namespace lccfs
