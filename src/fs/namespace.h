// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Names and attributes: every operation that is not on a regular file's bytes. One file per operation family, each with
// its step table on top (docs/PROTOCOL.md section 6). Threads as in lccfs/file_system.h.
#pragma once

#include <condition_variable>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "fs/attempts.h"
#include "fs/checks.h"
#include "fs/directories_in_use.h"
#include "fs/emptying.h"
#include "fs/files.h"
#include "fs/metadata.h"
#include "fs/rename_lock.h"
#include "fs/seals.h"

namespace lccfs {

class Namespace {
 public:
  Namespace(Instance& instance, Files& files, const FileSystemOptions& options)
      : instance_(instance),
        files_(files),
        options_(options),
        removals_(instance, [&files](Ino ino) { return files.is_in_use(ino); }),
        leases_(instance, files.kernel(), options),
        metadata_(instance, leases_),
        seals_(instance, metadata_, leases_),
        emptying_(instance.clock()) {
    files_.set_directory_handler([this](const format::Question& question) { return leases_.answer(question); });
    leases_.log.finish_files_with(
        [this](std::span<const Ino> inodes, NameLog::Done done) { files_.finish_new(inodes, std::move(done)); });
    leases_.log.discard_files_with([this](Ino ino) { files_.discard(ino); });
    leases_.log.tell_of_own_unlinked([this](const Removals::Unlinked& unlinked) { removals_.add(unlinked); });
    leases_.log.tell_of_removals([this](Ino ino) { files_.removal_is_stored(ino); },
                                 [this](Ino ino) { files_.has_its_name_again(ino); });
    leases_.tell_of_recalls([this](Ino directory) { removals_.leave(directory); });
    files_.set_stored_handler([this](const FileNode::Stored& stored) {
      metadata_.inodes.stored(stored.file, stored.attr_version, stored.is_known);
    });
  }
  ~Namespace() {
    files_.set_directory_handler(nullptr);
    files_.set_stored_handler(nullptr);
    wait_for_background_steps();
  }
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;
  /// Returns when no step is in flight after an answer any more (a moved inode's ctime; a directory's lease that is
  /// released; an inode that is removed).
  void wait_for_background_steps();

  Result<EntryReply> lookup(Ino parent, const std::string& name);
  void known_entry(Ino parent, const std::string& name, FileSystem::KnownDone done);
  bool begin_to_keep(Ino parent, const std::string& name, Ino directory, bool is_known);
  std::optional<Attributes> begin_to_keep_listed(Ino parent, const std::string& name, Ino directory);
  void is_kept_by_name(Ino directory) EXCLUDES(kept_mutex_);
  Result<EntryReply> make_node(const Caller&, Ino parent, const std::string& name, const NewNode&);
  Result<CreateReply> create(const Caller&, Ino parent, const std::string& name, std::uint32_t mode, int flags);
  Result<EntryReply> link(Ino ino, Ino parent, const std::string& name);
  Result<> unlink(Ino parent, const std::string& name);
  Result<> rmdir(Ino parent, const std::string& name);
  Result<> rename(Ino old_parent, const std::string& old_name, Ino new_parent, const std::string& new_name,
                  RenameMode mode);
  Result<std::string> read_link(Ino ino);
  Result<HandleId> open_directory(Ino ino);
  Result<std::vector<DirectoryEntry>> read_directory(HandleId handle, std::uint64_t cookie, std::size_t max_entries);
  Result<std::vector<ListedEntry>> read_directory_plus(HandleId handle, std::uint64_t cookie,
                                                       const FileSystem::HasRoom& has_room);
  void release_directory(HandleId handle);
  /// Of a directory that a collector is about to remove (or any inode): whether it is open here, or something made here
  /// may point to it. If not, nothing will later: it is forgotten here, its lease, too, and the next read finds it dead.
  bool needs_directory(Ino ino);
  Result<AttributesReply> get_attributes(Ino ino);
  /// The same, where memory knows it.
  std::optional<AttributesReply> known_attributes(Ino ino);
  /// Of what is held here, or unshared.
  std::optional<AttributesReply> attributes_from_memory(Ino ino);
  Result<AttributesReply> set_attributes(const Caller&, Ino ino, const SetAttributes&);
  Result<Bytes> get_xattr(Ino ino, const std::string& name);
  bool knows_no_xattr(Ino ino, std::string_view name);
  Result<std::vector<std::string>> list_xattrs(Ino ino);
  Result<> set_xattr(Ino ino, const std::string& name, const Bytes& value, XattrMode mode, SetgidBit setgid,
                     const Caller& caller);
  Result<> remove_xattr(Ino ino, const std::string& name, const Caller& caller);
  Result<> sync_directory(Ino ino);
  /// What was answered is stored: the last name that the inode was given (for fsync: io if it is lost); what adds
  /// names; all.
  Result<> sync_name_of(Ino ino);
  /// Whether that has anything to do. Does not block.
  bool has_name_to_sync(Ino ino);
  Result<> store_additions() { return leases_.log.store_additions(); }
  Result<> store_names() { return leases_.log.store_all(); }
  void begin_to_end() { leases_.log.begin_to_end(); }
  bool give_up_names_without_room(const Error& why) { return leases_.log.give_up_without_room(why); }
  Result<> untold_loss() const { return leases_.log.untold_loss(); }
  /// Whether an answer may rest on the leases that memory says are ours.
  bool believes_leases();
  void begin_to_store_ctimes() { store_later(instance_.unstored().ctimes_of(std::nullopt)); }
  void tick() {
    leases_.forget_names_once_fenced();
    leases_.log.send_all();
    removals_.tick();
    store_later(instance_.unstored().old_ctimes());
    leases_.release_unused();
  }
  void forget(Ino ino);
  /// Sets what is of the caches.
  void count(MountCounts& counts) const {
    counts.names = metadata_.names.counts();
    counts.inodes = metadata_.inodes.counts();
  }

 private:
  class Make;    // create.cpp
  class Link;    // link.cpp
  class Move;    // move.cpp
  class Rename;  // rename.cpp

  std::chrono::nanoseconds now() const { return instance_.clock().elapsed(); }
  std::optional<std::uint32_t> own_flags_of(Ino ino);
  bool had_no_flags(Ino ino, std::uint32_t flags, std::chrono::nanoseconds trusted_for);
  TimeSpec wall_time() const { return instance_.clock().wall_time(); }

  /// What a change keeps until it is stored: its tokens are not retired, and no collector removes the directory.
  struct KeptBehind {
    KeptBehind(Instance& instance, DirectoriesInUse& directories, Ino directory)
        : running(instance), making(directories, directory) {}
    const Instance::Operation running;
    const DirectoriesInUse::Making making;
  };
  /// Before the first token of the operation is drawn.
  std::shared_ptr<const KeptBehind> keep_behind(Ino directory) {
    return leases_.writes_behind() ? std::make_shared<const KeptBehind>(instance_, directories_, directory) : nullptr;
  }

  // -- namespace.cpp: answers, and what own steps have changed
  AttributesReply reply_for(const Inode& view);
  /// `sent`: when the read of the entry was.
  EntryReply entry_reply_for(const Inode& view, std::chrono::nanoseconds sent) {
    return entry_reply(reply_for(view), sent);
  }
  EntryReply entry_reply(const AttributesReply& reply, std::chrono::nanoseconds sent) const {
    return {reply.attributes, entry_ttl(sent), reply.attributes_ttl};
  }
  std::chrono::nanoseconds entry_ttl(std::chrono::nanoseconds sent) const;
  /// An own step changed `attr` and ctime.
  void attr_changed(const Inode& changed);
  /// Whether an inode that loses a name has none then, and nobody here has it open, or the store has refused it: nothing
  /// is to be done with it. (The kernel may tell of the last close after that.)
  bool is_gone_with_its_name(const Inode& inode) const {
    return inode.attr.nlink <= 1 && (!files_.is_open(inode.ino) || instance_.unstored().is_refused(inode.ino));
  }
  void lost_its_only_name(Ino ino);
  /// Stores what was added before the inode loses a name. false: start over; the inode, which would not have gone with its
  /// name before, would now, since the store refuses it, or its last close was told.
  Result<bool> store_additions_before_a_name_goes(const Inode& inode, bool was_gone);
  /// `unlink`, if nobody else can come to the inode.
  std::optional<Token> token_if_own(Ino ino, Token unlink) {
    return metadata_.unshared(ino) ? std::optional(unlink) : std::nullopt;
  }
  void one_link_less(const Inode& inode);
  /// Where a new name may be inserted. nullopt: start over. exists: the name is taken.
  Result<std::optional<Entries>> directory_with_room_for(const txn::Name& name, bool from_memory);
  /// The commit of what makes a name. false: refused. `may_be_there`: set to whether a failed step may have made it.
  Result<bool> insert_entry(const txn::Name& name, const format::EntryRecord& entry,
                            const std::optional<txn::SubdirectoryCount>& nsub, bool& may_be_there);
  /// The inode was moved within that directory: its ctime follows after the answer.
  void change_ctime_later(Ino moved, Ino directory, TimeSpec time);

  bool keep_ctime(Ino moved, Ino directory, TimeSpec time);
  void send_ctime(Ino moved, MetaTxn txn);
  void ctime_is_answered(Ino moved);
  void send_next_ctime(Ino moved, TimeSpec time);
  /// Ctimes that were kept.
  void store_later(const std::vector<Ino>& moved);
  /// A step that may be done twice, or not at all: the answer does not wait for it.
  void apply_later(MetaTxn txn);
  /// Lets its directory go, not at once, if the inode does not point there any more. Does not block.
  void look_again_at(const PointerInDoubt& pointer);
  void begin_background_step() EXCLUDES(background_mutex_);
  void end_background_step() EXCLUDES(background_mutex_);

  /// Whether the kernel may have kept its name since it knows the directory.
  bool may_be_kept_by_name(Ino directory) EXCLUDES(kept_mutex_);
  /// nullopt: the kernel may keep no such name.
  std::optional<Token> tenure_to_keep_in(Ino parent, const std::string& name);
  Result<bool> has_a_name(Ino ino);
  Result<EntryReply> lookup_by_number(Ino ino);
  Result<bool> have_it_shared(const Inode& view);
  Result<bool> remove_behind(const txn::Name& name, const Entries& entries);
  bool begin_to_empty(Ino directory);
  std::optional<EntryReply> reply_to_next_to_go(Ino ino, const Inode& directory, std::chrono::nanoseconds sent);
  std::optional<format::AttrRecord> look_anew_at(Ino ino);
  Result<> check_as_told(Ino ino);
  void read_next_to_go(const txn::Name& name, Token tenure);
  Result<std::optional<txn::Entry>> entry_for_lookup(const txn::Name& name, std::optional<Metadata::ReadAhead>& ahead);
  Result<Ino> parent_to_tell(Ino directory);
  Result<Ino> parent_of(const Inode& directory, const KeyPage& further);
  /// Between two directories.
  Result<> rename_across(txn::Name from, txn::Name to, RenameMode mode);
  Inode as_of_now(Inode read);
  void bring_up_to_date(std::map<Ino, Inode>& inodes);
  Result<std::optional<CreateReply>> open_existing(const Caller& caller, const txn::Name& name, int flags);
  std::optional<ListingPage> page_from_memory(Ino directory, std::uint64_t cookie);
  Result<std::optional<ListingPage>> list_held(Ino directory, std::uint64_t cookie);
  void take_if_next_to_go(Ino directory);
  Result<std::optional<ListingPage>> read_whole_page(Ino directory, std::uint64_t cookie, bool is_being_opened);
  Result<ListingPage> read_page(Ino directory, std::uint64_t cookie, bool is_being_opened);
  /// What comes after `cookie`, as many as `how_many` takes of it.
  using HowMany = std::function<std::size_t(std::span<const DirectoryEntry>)>;
  Result<ListingPage> list_some(HandleId id, std::uint64_t cookie, const HowMany& how_many);

  // -- attributes.cpp, xattr.cpp
  /// Of a directory that is held here, as it was read within the attribute time-out. nullopt: read it.
  std::optional<AttributesReply> held_attributes(Ino ino);
  using EditAttr = std::function<Result<>(format::AttrRecord&)>;
  Result<AttributesReply> read_attributes(Ino ino);
  Result<AttributesReply> directory_reply_for(const Inode& view);
  Result<AttributesReply> directory_reply_by_number(const Inode& view,
                                                    const std::optional<HeldDirectories::Ticket>& kept_as);
  Result<> set_mode_and_owner(const Caller& caller, const Inode& known, const SetAttributes& changes);
  /// Of an inode that nobody else has come by. nullopt: read it.
  std::optional<AttributesReply> unshared_attributes(Ino ino);
  /// change_attr of an inode that the store does not have yet. false: it has, or may have.
  Result<bool> change_unstored(const Inode& known, const EditAttr& change);
  Result<bool> change_directory_behind(const Inode& known, const EditAttr& change);
  Result<bool> set_times_behind(const Inode& known, const txn::AttributeChange& times);
  /// change_attr of an inode of any type; memory knows of it then.
  Result<> change_attr_of(Ino ino, const EditAttr& change, const Inode* known = nullptr);
  Result<> set_blind_times(const Inode& known, const SetAttributes& changes);
  Result<StepResult> run_on(const Inode& inode, MetaTxn step);
  Result<std::optional<Bytes>> read_attribute(Ino ino, const std::string& name);
  Result<> check_room_for(Ino ino, const std::string& name);
  Result<> explain_refusal(Ino ino, const std::string& name, XattrMode mode);
  /// `edit` changes `attr` in the same step.
  Result<> set_attribute(Ino ino, const std::string& name, const Bytes& value, XattrMode mode, const EditAttr& edit);
  Result<> remove_with_flag(Ino ino, const std::string& name, const EditAttr& allowed = {});

  // -- posix_acl.cpp
  Result<> set_acl(const Caller& caller, Ino ino, const std::string& name, const Bytes& value, SetgidBit setgid);
  Result<> remove_acl(const Caller& caller, Ino ino, const std::string& name);
  /// nullopt: it hands none down. 1 read if it does.
  Result<std::optional<Acl>> default_acl_of(const Inode& directory);

  Instance& instance_;
  Files& files_;
  const FileSystemOptions options_;
  DirectoriesInUse directories_;
  Removals removals_;       // the log tells it of what it has stored
  DirectoryLeases leases_;  // what is in its log keeps some of these
  Metadata metadata_;
  Seals seals_;
  RenamePatience rename_patience_;
  Emptying emptying_;
  InFlight reads_ahead_;  // of what is likely to go next
  std::stop_source stop_reading_;

  Mutex kept_mutex_;
  std::unordered_set<Ino> kept_by_name_ GUARDED_BY(kept_mutex_);  // directories, since the kernel knows them

  Mutex background_mutex_;
  std::condition_variable background_done_;
  unsigned in_background_ GUARDED_BY(background_mutex_) = 0;  // steps in flight after their answers
  /// Of inodes whose ctime is on its way, one at a time: the newest behind it.
  std::map<Ino, std::optional<TimeSpec>> next_ctimes_ GUARDED_BY(background_mutex_);
};

}  // namespace lccfs
