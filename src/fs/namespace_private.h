// SPDX-License-Identifier: LGPL-2.1-or-later
// What the operations of the namespace share. Only their files include it.
#pragma once

#include <condition_variable>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/object_names.h"
#include "fs/attempts.h"
#include "fs/directory_handles.h"
#include "fs/name_cache.h"
#include "fs/namespace.h"
#include "fs/parents_of_new.h"
#include "txn/namespace_txn.h"

namespace lccfs {

struct Namespace::Private {
  /// Entries of one directory, as memory holds them or as one read showed them.
  struct Seen {
    bool fresh = false;
    std::shared_ptr<const InodeView> directory;  // nullptr: memory holds the entries, but not the directory
    std::vector<std::optional<txn::Entry>> entries;
  };
  /// The step in the parent that completes a seal.
  using CommitStep = std::function<MetaTxn(const txn::SubdirectoryCount&)>;
  struct ExpectedEntry {
    const txn::Name& name;
    const std::optional<txn::Entry>& entry;
  };

  Private(Instance& its_instance, Files& its_files, const FileSystemOptions& its_options)
      : instance(its_instance),
        files(its_files),
        options(its_options),
        names(its_instance.clock()),
        inodes(its_instance.clock()) {}

  txn::Name name_in(Ino directory, const std::string& text) const { return {instance.super().uuid, directory, text}; }
  Attempts attempts() { return {instance.clock(), instance.next_token()}; }
  std::chrono::nanoseconds now() const { return instance.clock().elapsed(); }
  TimeSpec wall_time() const { return instance.clock().wall_time(); }

  // -- lookup.cpp: reads
  /// What memory holds of an inode, or nullptr.
  std::shared_ptr<const InodeView> held(Ino ino);
  /// Reads the inode; memory holds it from then on.
  Result<InodeView> read(Ino ino, const InodeParts& parts = {});
  /// The same, already under way.
  struct ReadAhead {
    Ino ino;
    InodeCache::Ticket ticket;
    std::future<Result<InodeView>> inode;
  };
  ReadAhead read_ahead(Ino ino) { return {ino, inodes.begin(ino), lccfs::read_ahead(instance, ino)}; }
  Result<InodeView> finish(ReadAhead& ahead);
  Result<InodeView> remember(const InodeCache::Ticket& ticket, Ino ino, Result<InodeView> read);
  /// From memory, else read. `stale`: it is gone.
  Result<std::shared_ptr<const InodeView>> existing_inode(Ino ino);
  /// Also where it has lost its name, and nobody has marked it dead yet: then its parent knows (1 read, only if sealed).
  Result<bool> was_removed(const InodeView& view);
  Result<std::optional<txn::Entry>> entry_in(const InodeView& directory, const txn::Name& name) const;
  /// Entries of one directory; from memory if that is allowed and holds them all. `stale`: the directory was removed.
  Result<Seen> see(std::initializer_list<const txn::Name*> wanted, bool from_memory);
  /// Whether the names, read again, are what they were (rule 4).
  Result<bool> unchanged(std::span<const ExpectedEntry> expected);
  /// Instance::run for a step on a directory's names. `stale`: the directory is gone.
  Result<StepResult> run_in_directory(MetaTxn txn);
  static bool as_expected(const std::map<std::string, Bytes>& keys, std::span<const ExpectedEntry> expected);
  AttributesReply reply_for(const InodeView& view);
  Result<EntryReply> by_number(Ino ino);
  EntryReply entry_reply_for(const InodeView& view, std::chrono::nanoseconds sent);

  /// An operation that changes names may begin.
  Result<> check_change(const std::string& name) const;
  Result<> check_writable() const;

  // -- create.cpp
  /// The inode of step 1, and whether step 2 may have named it.
  struct Made {
    std::optional<InodeView> inode;
    InodeCache::Ticket ticket;
    bool may_have_name = false;
  };
  Result<InodeView> make(const Caller& caller, const txn::Name& name, const NewNode& node, bool with_lease);
  Result<InodeView> make_inode(const Caller& caller, const InodeView& parent, const NewNode& node, bool with_lease);
  Result<InodeView> make_named(const Caller& caller, const txn::Name& name, const NewNode& node, bool with_lease,
                               Made& made);
  void remove_never_named(const InodeView& made, Ino directory);
  /// It may exist without a name, and points to that directory.
  void leave_to_collector(Ino made, Ino directory);
  /// nullopt: it has just gone.
  Result<std::optional<CreateReply>> open_existing(const Caller& caller, const txn::Name& name, int flags);

  // -- unlink.cpp
  void one_name_less(const InodeView& inode);

  // -- settle.cpp: seals, and names without an inode (rules 3 and 4)
  /// The inode behind an entry, from memory or read. nullptr: it is gone, and so is its name now: start over.
  Result<std::shared_ptr<const InodeView>> target_of(const txn::Name& name, const txn::Entry& entry);
  Result<> clear_dangling(const txn::Name& name, const txn::Entry& entry);
  /// Afterwards the directory is no longer sealed as it was: live, or dead.
  Result<> settle_seal(const InodeView& sealed);
  /// Seals the empty directory behind the first of these names. nullopt: things have changed, start over. not_empty:
  /// it is not, and the names are still what they were. `logged`: the inode whose item this operation has logged.
  Result<std::optional<format::StateRecord>> seal_empty(std::span<const ExpectedEntry> expected, Token token,
                                                        Ino& logged);
  Result<bool> really_has_entries(Ino directory, const KeyPage& page);
  /// Runs the parent's step of the directory that seal_empty sealed, and takes the seal back if it is not applied.
  /// false: start over.
  Result<bool> commit_sealed(const format::StateRecord& seal, std::shared_ptr<const InodeView> parent,
                             std::span<const ExpectedEntry> expected, TimeSpec time, const CommitStep& step);
  void take_back(const format::StateRecord& seal, Ino sealed);

  // -- rename.cpp. false: start over
  struct Renaming;
  Result<bool> rename_once(Renaming& renaming, bool from_memory);
  Result<bool> rename_to_other(Renaming& renaming, const InodeView& moved, const InodeView& replaced);
  Result<bool> exchange(const Renaming& renaming, const InodeView& moved, const InodeView& other);
  Result<bool> move(const Renaming& renaming, const InodeView& moved, const InodeView* replaced_file);
  Result<bool> replace_directory(Renaming& renaming, const InodeView& moved);
  void moved_to(const Renaming& renaming, Ino moved, Token token, TimeSpec time);
  /// The inode was moved: its ctime follows behind the answer.
  void change_ctime_behind(Ino moved, TimeSpec time);

  // -- readdir.cpp
  Result<ListingPage> read_page(Ino directory, std::uint64_t cookie, bool is_being_opened);

  // -- attributes.cpp
  /// A step on a directory's entries was applied: memory knows at once.
  void directory_changed(Ino directory, std::uint64_t version, TimeSpec time, const txn::SubdirectoryCount* nsub);
  Result<AttributesReply> directory_reply_for(const InodeView& view);
  /// An own step changed `attr` and ctime.
  void attr_changed(const InodeView& changed);
  Result<> set_mode_and_owner(const InodeView& known, const SetAttributes& changes);
  Result<> set_blind_times(Ino ino, const SetAttributes& changes);

  // -- xattr.cpp
  Result<std::vector<std::string>> attribute_names(Ino ino);
  Result<> check_room_for(Ino ino, const std::string& name);
  Result<> explain_refusal(Ino ino, const std::string& name, XattrMode mode);
  Result<> remove_capability(Ino ino);

  Instance& instance;
  Files& files;
  const FileSystemOptions options;
  NameCache names;
  InodeCache inodes;
  DirectoryHandles directories;
  ParentsOfNew parents_of_new;

  std::mutex background_mutex;  // guards how many steps are in flight behind their answers
  std::condition_variable background_done;
  unsigned in_background = 0;
};

/// too long, or no single path component.
Result<> check_name(const std::string& name);

/// Whether a step that failed with this error is certainly not applied. (Others may have been, by an earlier run.)
bool certainly_not_applied(const Error& error);

}  // namespace lccfs
