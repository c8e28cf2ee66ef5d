// SPDX-License-Identifier: LGPL-2.1-or-later
//
// create, mkdir, mknod, symlink (P, name): 2 writes, one after the other.
//
//  # | object     | step                                                       | stop here leaves
//  0 | Session.me | [log queue items] range intent, long since durable         | numbers that are never used
//  1 | Inode.X    | [create inode] exclusive; attributes; parent (P, token);   | X without a name: a collector removes
//    |            | the ACLs that P hands down, for which P is read first;     | it, from the range intent
//    |            | create-and-open: lease = me, "may exist" bit of object 0;  |
//    |            | mkdir: its lease, with t as the tenure                     |
//  2 | Inode.P    | [insert entry] guard open(P), the name absent; set both    | COMMIT
//    |            | keys; times; mkdir: nsub + 1, guarded as read              |
//  3 | Inode.X    | [remove new inode] only if 2 was refused; guard: unchanged | before it: as after 0
//
// Where names are written behind (docs/NAMES.md section 5) the answer comes first; then 1, with what was changed of X
// meanwhile (unstored_inodes.h), and 2 as part of a batch (name_log.cpp).
//
// While it runs, and as long as the name of X is in doubt, P is not removed: a collector asks (docs/PROTOCOL.md section
// 5).
//
// Whether 2 was applied is decided by its number, never by looking for the name: another client may have renamed or
// unlinked it since.
#include <fcntl.h>

#include "base/expected_errors.h"
#include "base/log.h"
#include "fs/mode_bits.h"
#include "fs/namespace.h"
#include "fs/ownership.h"

namespace lccfs {

namespace {

/// A setgid directory hands its group down, and itself to subdirectories. The mode is as asked for.
format::AttrRecord attributes_for(const Caller& caller, const Inode& parent, const NewNode& node) {
  format::AttrRecord attr;
  attr.type = node.type;
  attr.mode = node.type == FileType::symlink ? 0777U : node.mode & permission_bits;
  attr.uid = caller.uid;
  attr.gid = caller.gid;
  if ((parent.attr.mode & setgid_bit) != 0) {
    attr.gid = parent.attr.gid;
    if (node.type == FileType::directory) attr.mode |= setgid_bit;
    if ((attr.mode & group_execute_bit) != 0) attr.mode = mode_allowed(caller, attr);
  }
  if (node.type == FileType::character_device || node.type == FileType::block_device) attr.rdev = node.rdev;
  return attr;
}

/// What the default ACL of its directory makes of a new inode: it stands in for the umask, and a directory hands it on.
void inherit(const Acl& default_acl, txn::NewInode& made) {
  const auto access = inherited(default_acl, made.attr.mode);
  made.attr.mode = mode_with(access, made.attr.mode);
  if (!is_no_more_than_a_mode(access)) made.attributes[format::attribute::access_acl] = encode(access);
  if (made.attr.type == FileType::directory) made.attributes[format::attribute::default_acl] = encode(default_acl);
  for (const auto& [name, value] : made.attributes) made.attr.flags |= format::flags_of(name);
}

/// A client that makes a file and opens it is about to write it: the bit promises nothing (docs/DATA.md section 1), and
/// the first write needs no step for it.
std::map<std::uint64_t, format::MapBlock> first_object_may_exist() {
  format::MapBlock first;
  first.may_exist.set(0);
  return {{0, first}};
}

/// What a read of the inode just made would show.
Inode view_of(const txn::NewInode& made, std::uint64_t version, std::chrono::nanoseconds sent) {
  Inode view;
  view.ino = made.ino;
  view.version = version;
  view.sent = sent;
  view.attr = made.attr;
  view.attr_raw = encode(made.attr);
  view.state_raw = encode(view.state);
  view.parent = made.parent;
  view.size_bytes = made.symlink_target.size();
  if (view.is_directory()) view.nsub_raw = encode(format::NumberRecord{0});
  view.atime = view.mtime = view.ctime = made.time;
  view.lease = made.lease;
  view.directory_lease = made.directory_lease;
  view.names_behind = made.names_behind;
  for (const auto& [block, bits] : made.map_blocks) view.map.set_block(block, bits);
  return view;
}

/// The kernel asks for no permission where it believes that it creates the file. Others are to look the name up again,
/// and be checked as at any open: the groups and ACLs that may permit it are known to the kernel alone.
bool may_surely_open(const Caller& caller, const Attributes& file, int flags) {
  std::uint32_t wanted = (flags & O_ACCMODE) == O_WRONLY ? 0 : owner_read_bit;
  if ((flags & (O_ACCMODE | O_TRUNC)) != O_RDONLY) wanted |= owner_write_bit;
  return caller.uid == file.uid && (file.mode & wanted) == wanted;
}

}  // namespace

/// Makes one inode, and names it.
class Namespace::Make {
 public:
  Make(Namespace& its_namespace, const Caller& caller, const txn::Name& name, const NewNode& node, bool with_lease)
      : namespace_(its_namespace), caller_(caller), name_(name), node_(node), with_lease_(with_lease) {}

  Result<Inode> run();

 private:
  Result<bool> name_once(bool from_memory);
  Result<> make_inode(const Inode& parent);
  Result<bool> may_be_behind(const Entries& entries);
  void is_born();
  Result<> store_inode();
  Result<> set_permissions(const Inode& parent, txn::NewInode& inode);
  Result<bool> name_behind(const Entries& entries);
  Result<bool> insert_entry(const Inode& parent);
  void unmake();
  void remove_never_named();
  void leave_to_collector(Ino ino);

  Namespace& namespace_;
  Instance& instance_ = namespace_.instance_;
  Metadata& metadata_ = namespace_.metadata_;
  const Caller& caller_;
  const txn::Name& name_;
  const NewNode& node_;
  const bool with_lease_;
  const std::shared_ptr<const KeptBehind> kept_ = namespace_.keep_behind(name_.directory);
  std::optional<Inode> made_;  // the inode of step 1
  bool is_stored_ = false;     // step 1 is applied
  bool is_absent_ = false;     // it is certainly not, nor will be
  InodeCache::Ticket ticket_;
  bool may_have_name_ = false;  // step 2 may have been applied
};

/// What the mode loses of what was asked for, and the ACLs. A symlink has all bits, and no ACL.
Result<> Namespace::Make::set_permissions(const Inode& parent, txn::NewInode& inode) {
  if (node_.type == FileType::symlink) return {};
  LCCFS_TRY(const auto default_acl, namespace_.default_acl_of(parent));
  if (default_acl) {
    inherit(*default_acl, inode);
  } else {
    inode.attr.mode &= ~(caller_.umask & access_bits);
  }
  return {};
}

/// Step 1.
Result<> Namespace::Make::make_inode(const Inode& parent) {
  txn::NewInode inode;
  LCCFS_TRY(inode.ino, instance_.allocate_ino());
  const Token token = instance_.next_token();
  inode.time = namespace_.wall_time();
  inode.attr = attributes_for(caller_, parent, node_);
  LCCFS_CHECK(set_permissions(parent, inode));
  inode.attr.birth = inode.time;
  inode.attr.birth_token = token;
  inode.parent = {parent.ino, token};
  if (with_lease_) {
    inode.lease = instance_.id();
    inode.map_blocks = first_object_may_exist();
  }
  if (node_.type == FileType::directory && namespace_.leases_.takes_leases() && namespace_.leases_.held.has_room()) {
    inode.directory_lease = token;
    inode.names_behind = namespace_.leases_.writes_behind();
  }
  inode.symlink_target = node_.symlink_target;
  instance_.unstored().add(inode.ino, txn::create_inode(inode));
  made_ = view_of(inode, 0, namespace_.now());
  ticket_ = metadata_.inodes.begin(inode.ino);
  return {};
}

/// This thread may have stood still while it was born: then it was stored for its lease, and is as it was left.
Result<> Namespace::Make::store_inode() {
  if (is_stored_) return {};
  const auto version = instance_.store_inode(made_->ino);
  is_absent_ = !version && version.error().outcome == Outcome::definite;
  if (!version) return std::unexpected(version.error());
  is_stored_ = true;
  if (*version == 0) {
    LCCFS_TRY(*made_, read_inode_and_map(instance_, made_->ino));
    return {};
  }
  made_->version = *version;
  is_born();
  return {};
}

void Namespace::Make::leave_to_collector(Ino ino) {
  namespace_.directories_.keep(name_.directory);
  instance_.leave_to_collector(ino);
}

/// Step 3. Cut short, or refused, it leaves an inode without a name: an item says so.
void Namespace::Make::remove_never_named() {
  if (!is_stored_) return;
  const auto removed = instance_.run_repeatable(txn::remove_new_inode(made_->ino, made_->version));
  if (done_or(ErrorCode::not_found, removed)) return;
  log::failed(log::Level::warning, format::inode_object(made_->ino) + ": left to the collector", removed.error());
  leave_to_collector(made_->ino);
}

/// What may find no room is told to who makes it. A directory is held by who makes it.
Result<bool> Namespace::Make::may_be_behind(const Entries& entries) {
  if (is_stored_ || (node_.type == FileType::directory && !made_->names_behind)) return false;
  if (!namespace_.files_.has_room() || instance_.unstored().is_failing()) return false;
  return metadata_.may_change_behind(entries);
}

/// Memory knows of it: before anybody can find it.
void Namespace::Make::is_born() {
  if (with_lease_) namespace_.files_.born(*made_);
  if (!made_->directory_lease) return;
  namespace_.leases_.held.born(made_->ino, *made_->directory_lease, made_->version);
  if (made_->names_behind) namespace_.leases_.held.may_write_behind(made_->ino, *made_->directory_lease);
}

/// Steps 1 and 2, behind the answer. false: step by step. Others may find it, and change it, before this returns.
Result<bool> Namespace::Make::name_behind(const Entries& entries) {
  LCCFS_TRY(const bool may_be_behind, this->may_be_behind(entries));
  if (!may_be_behind) return false;
  const Ino ino = made_->ino;
  is_born();
  metadata_.inodes.put_unshared(*made_, {name_.directory, *entries.directory->directory_lease});
  const bool is_directory = node_.type == FileType::directory;
  const auto time = namespace_.wall_time();
  const format::EntryRecord entry{ino, node_.type, made_->attr.birth_token};
  const bool is_named = metadata_.change_behind(
      {entries,
       {{name_, entries.found.front(), txn::Entry{encode(entry), entry}}},
       txn::insert_entry(name_, entry, time, std::nullopt),
       time,
       {.named = ino, .made = is_directory ? std::optional(ino) : std::nullopt, .subdirectories = is_directory ? 1 : 0},
       kept_});
  if (!is_named) metadata_.inodes.drop(ino);
  return is_named;
}

/// Step 2. false: refused.
Result<bool> Namespace::Make::insert_entry(const Inode& parent) {
  std::optional<txn::SubdirectoryCount> nsub;
  if (node_.type == FileType::directory) nsub = {parent.nsub_raw, parent.nsub + 1};
  return namespace_.insert_entry(name_, {made_->ino, node_.type, made_->attr.birth_token}, nsub, may_have_name_);
}

/// false: start over.
Result<bool> Namespace::Make::name_once(bool from_memory) {
  LCCFS_TRY(const auto entries, namespace_.directory_with_room_for(name_, from_memory));
  if (!entries) return false;
  const auto& parent = *entries->directory;
  if (!made_) LCCFS_CHECK(make_inode(parent));
  LCCFS_TRY(const bool is_named, name_behind(*entries));
  if (is_named) return true;
  LCCFS_CHECK(store_inode());
  return insert_entry(parent);
}

/// Nothing of it was answered.
void Namespace::Make::unmake() {
  if (with_lease_) namespace_.files_.unborn(made_->ino);
  namespace_.leases_.held.end_unless_logged(made_->ino);
  const bool was_never_sent = instance_.unstored().forget(made_->ino);
  const bool may_be_stored = !is_stored_ && !is_absent_ && !was_never_sent;
  if (may_have_name_ || may_be_stored) return leave_to_collector(made_->ino);
  remove_never_named();
}

Result<Inode> Namespace::Make::run() {
  LCCFS_CHECK(check_change(namespace_.options_, name_.name));
  LCCFS_CHECK(check_node(node_));
  const DirectoriesInUse::Making making(namespace_.directories_, name_.directory);
  if (const auto named = until_done(instance_, [this](bool first) { return name_once(first); }); !named) {
    if (made_) unmake();
    if (is_out_of_space(named.error())) namespace_.files_.name_refused(named.error());
    return std::unexpected(named.error());
  }
  if (is_stored_) {
    metadata_.inodes.put_read(ticket_, *made_);
    namespace_.files_.name_found_room();
  }
  return *made_;
}

Result<EntryReply> Namespace::make_node(const Caller& caller, Ino parent, const std::string& text,
                                        const NewNode& node) {
  const auto sent = now();
  LCCFS_TRY(const auto made, Make(*this, caller, metadata_.name_in(parent, text), node, false).run());
  return entry_reply_for(made, sent);
}

/// The file that has the name already. nullopt: it has just gone.
Result<std::optional<CreateReply>> Namespace::open_existing(const Caller& caller, const txn::Name& name, int flags) {
  const auto sent = now();
  LCCFS_TRY(const auto entries, metadata_.find({&name}, Metadata::Trust::in_leases));
  const auto& entry = entries.found.front();
  if (!entry) return std::nullopt;
  if (entry->record.type == FileType::directory) return failure(ErrorCode::is_directory, describe(name));
  // The kernel looks the name up again, finds the symlink, and follows it.
  if (entry->record.type != FileType::regular) return failure(ErrorCode::stale, "no longer a regular file");
  const auto file = files_.get_attributes(entry->record.ino);
  if (file && !may_surely_open(caller, file->attributes, flags)) return failure(ErrorCode::stale, describe(name));
  if (!file && file.error().code != ErrorCode::stale) return std::unexpected(file.error());
  if ((flags & O_TRUNC) != 0) LCCFS_CHECK(store_additions());
  const auto opened = files_.open(caller, entry->record.ino, flags, believes_leases());
  if (!opened && opened.error().code == ErrorCode::stale) {
    metadata_.inodes.drop(entry->record.ino);
    return std::nullopt;
  }
  if (!opened) return std::unexpected(opened.error());
  auto attributes = files_.get_attributes(entry->record.ino);
  if (!attributes) {
    files_.release(opened->handle);
    return std::unexpected(std::move(attributes).error());
  }
  return CreateReply{entry_reply(*attributes, sent), *opened};
}

Result<CreateReply> Namespace::create(const Caller& caller, Ino parent, const std::string& text, std::uint32_t mode,
                                      int flags) {
  const auto name = metadata_.name_in(parent, text);
  const NewNode file{FileType::regular, mode, 0, {}};
  for (Attempts tries(instance_);;) {
    LCCFS_CHECK(tries.next());
    const auto sent = now();
    auto made = Make(*this, caller, name, file, true).run();
    if (made) {
      const auto opened = files_.open_new(*made, flags);
      return CreateReply{entry_reply_for(*made, sent), opened};
    }
    if (made.error().code != ErrorCode::exists || (flags & O_EXCL) != 0) {
      return std::unexpected(std::move(made).error());
    }
    LCCFS_TRY(auto existing, open_existing(caller, name, flags & ~O_CREAT));
    if (existing) return *existing;
  }
}

}  // namespace lccfs
