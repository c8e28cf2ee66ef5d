// SPDX-License-Identifier: LGPL-2.1-or-later
//
// create, mkdir, mknod, symlink (P, name): 2 writes, one after the other.
//
//  # | object     | step                                             | stop here leaves
//  0 | Session.me | range intent, long since durable                 |
//  1 | Inode.X    | create exclusive; attributes; parent (P, token)  | orphan X: the range intent names it
//  2 | Inode.P    | guard open(P), the name absent; set both keys;   | COMMIT
//    |            | times; mkdir: nsub + 1, guarded as read          |
//  3 | Inode.X    | only if 2 failed: remove X as 1 left it          |
//
// While it runs, and as long as the name of X is in doubt, P is not removed: a collector asks (section 5).
//
// Whether 2 was applied is decided by its number, never by looking for the name: another client may have renamed or
// unlinked it since.
#include <fcntl.h>

#include "base/log.h"
#include "fs/mode_bits.h"
#include "fs/namespace_private.h"

namespace lccfs {

namespace {

Result<> check_node(const NewNode& node) {
  if (node.type != FileType::symlink) return {};
  if (node.symlink_target.empty()) return failure(ErrorCode::not_found, "a symlink to nowhere");
  if (node.symlink_target.size() > format::symlink_limit_bytes) {
    return failure(ErrorCode::name_too_long, "symlink target of over 4095 bytes");
  }
  return {};
}

/// A setgid directory hands its group down, and itself to subdirectories.
format::AttrRecord attributes_for(const Caller& caller, const InodeView& parent, const NewNode& node) {
  format::AttrRecord attr;
  attr.type = node.type;
  attr.mode = node.type == FileType::symlink ? 0777U : node.mode & permission_bits;
  attr.uid = caller.uid;
  attr.gid = caller.gid;
  if ((parent.attr.mode & setgid_bit) != 0) {
    attr.gid = parent.attr.gid;
    if (node.type == FileType::directory) attr.mode |= setgid_bit;
  }
  if (node.type == FileType::character_device || node.type == FileType::block_device) attr.rdev = node.rdev;
  return attr;
}

/// What a read of the inode just made would show.
InodeView view_of(const txn::NewInode& made, std::uint64_t version, std::chrono::nanoseconds sent) {
  InodeView view;
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
  return view;
}

}  // namespace

Result<InodeView> Namespace::Private::make_inode(const Caller& caller, const InodeView& parent, const NewNode& node,
                                                 bool with_lease) {
  txn::NewInode inode;
  LCCFS_TRY(inode.ino, instance.allocate_ino());
  const Token token = instance.next_token();
  inode.time = wall_time();
  inode.attr = attributes_for(caller, parent, node);
  inode.attr.birth = inode.time;
  inode.attr.birth_token = token;
  inode.parent = {parent.ino, token};
  if (with_lease) inode.lease = instance.id();
  inode.symlink_target = node.symlink_target;
  const auto sent = now();
  auto created = instance.run_repeatable(txn::create_inode(inode));
  if (created) return view_of(inode, created->version, sent);
  // An earlier run of the step may have made it, whatever the answer of the last one: the birth token decides.
  const auto there = read_inode(instance, inode.ino);
  if (there && there->attr.birth_token == token) return view_of(inode, there->version, sent);
  if (there) return failure(ErrorCode::corrupt, format::inode_object(inode.ino) + ": its number was handed out twice");
  if (there.error().code != ErrorCode::not_found) leave_to_collector(inode.ino, parent.ino);
  return std::unexpected(created.error().code == ErrorCode::exists ? there.error() : created.error());
}

void Namespace::Private::leave_to_collector(Ino made, Ino directory) {
  parents_of_new.keep(directory);
  instance.leave_to_collector(made);
}

/// Step 3. Cut short, or refused, it leaves an inode without a name: an item says so.
void Namespace::Private::remove_never_named(const InodeView& made, Ino directory) {
  const auto removed = instance.run_repeatable(txn::remove_new_inode(made.ino, made.version));
  if (removed || removed.error().code == ErrorCode::not_found) return;
  log::warning(format::inode_object(made.ino) + ": left to the collector: " + removed.error().context);
  leave_to_collector(made.ino, directory);
}

Result<InodeView> Namespace::Private::make_named(const Caller& caller, const txn::Name& name, const NewNode& node,
                                                 bool with_lease, Made& made) {
  for (auto tries = attempts();;) {
    LCCFS_CHECK(tries.next());
    const auto sent = now();
    LCCFS_TRY(const auto seen, see({&name}, tries.first()));
    if (!seen.directory || !seen.directory->live()) continue;  // memory may hold a dead one: nothing is to point there
    if (seen.directory->state.kind == format::StateRecord::Kind::sealed) {
      LCCFS_CHECK(settle_seal(*seen.directory));
      continue;
    }
    if (seen.entries.front()) {
      if (!seen.fresh) continue;
      LCCFS_TRY(const auto target, target_of(name, *seen.entries.front()));
      if (!target) continue;
      return failure(ErrorCode::exists, format::inode_object(name.directory) + ": there is an entry " + name.name);
    }
    if (!made.inode) {
      LCCFS_TRY(made.inode, make_inode(caller, *seen.directory, node, with_lease));
      made.ticket = inodes.begin(made.inode->ino);
      if (with_lease) files.born(*made.inode);
    }
    std::optional<txn::SubdirectoryCount> nsub;
    if (node.type == FileType::directory) nsub = {seen.directory->nsub_raw, seen.directory->nsub + 1};
    const format::EntryRecord entry{made.inode->ino, node.type, made.inode->attr.birth_token};
    const auto time = wall_time();
    const auto step = run_in_directory(txn::insert_entry(name, entry, time, nsub));
    if (!step) {
      made.may_have_name = !certainly_not_applied(step.error());
      return std::unexpected(step.error());
    }
    if (step->decided == Decided::refused) continue;
    names.put(name, txn::Entry{encode(entry), entry}, sent);
    directory_changed(name.directory, step->version, time, nsub ? &*nsub : nullptr);
    return *made.inode;
  }
}

Result<InodeView> Namespace::Private::make(const Caller& caller, const txn::Name& name, const NewNode& node,
                                           bool with_lease) {
  LCCFS_CHECK(check_change(name.name));
  LCCFS_CHECK(check_node(node));
  const ParentsOfNew::Making making(parents_of_new, name.directory);
  Made made;
  auto named = make_named(caller, name, node, with_lease, made);
  if (!named && made.inode) {
    if (with_lease) files.unborn(made.inode->ino);
    if (made.may_have_name) leave_to_collector(made.inode->ino, name.directory);
    if (!made.may_have_name) remove_never_named(*made.inode, name.directory);
  }
  if (named) inodes.put_read(made.ticket, *named);
  return named;
}

Result<EntryReply> Namespace::make_node(const Caller& caller, Ino parent, const std::string& text,
                                        const NewNode& node) {
  const auto sent = private_->now();
  const auto name = private_->name_in(parent, text);
  LCCFS_TRY(const auto made, private_->make(caller, name, node, false));
  return private_->entry_reply_for(made, sent);
}

Result<std::optional<CreateReply>> Namespace::Private::open_existing(const Caller& caller, const txn::Name& name,
                                                                     int flags) {
  const auto sent = now();
  LCCFS_TRY(const auto seen, see({&name}, false));
  const auto& entry = seen.entries.front();
  if (!entry) return std::nullopt;
  if (entry->record.type == FileType::directory) {
    return failure(ErrorCode::is_directory, format::inode_object(name.directory) + ": " + name.name);
  }
  // Whoever looks the name up again finds the symlink, and follows it.
  if (entry->record.type != FileType::regular) return failure(ErrorCode::stale, "no longer a regular file");
  const auto opened = files.open(caller, entry->record.ino, flags);
  if (!opened && opened.error().code == ErrorCode::stale) {
    inodes.drop(entry->record.ino);
    return std::nullopt;
  }
  if (!opened) return std::unexpected(opened.error());
  auto attributes = files.get_attributes(entry->record.ino);
  if (!attributes) {
    files.release(opened->handle);
    return std::unexpected(std::move(attributes).error());
  }
  const auto entry_ttl = std::max(std::chrono::nanoseconds(0), sent + options.entry_ttl - now());
  return CreateReply{{attributes->attributes, entry_ttl, attributes->attributes_ttl}, *opened};
}

Result<CreateReply> Namespace::create(const Caller& caller, Ino parent, const std::string& text, std::uint32_t mode,
                                      int flags) {
  const auto name = private_->name_in(parent, text);
  for (auto tries = private_->attempts();;) {
    LCCFS_CHECK(tries.next());
    const auto sent = private_->now();
    auto made = private_->make(caller, name, {FileType::regular, mode, 0, {}}, true);
    if (made) {
      const auto opened = private_->files.open_new(*made, flags);
      return CreateReply{private_->entry_reply_for(*made, sent), opened};
    }
    if (made.error().code != ErrorCode::exists || (flags & O_EXCL) != 0) {
      return std::unexpected(std::move(made).error());
    }
    LCCFS_TRY(auto existing, private_->open_existing(caller, name, flags & ~O_CREAT));
    if (existing) return *existing;
  }
}

}  // namespace lccfs
