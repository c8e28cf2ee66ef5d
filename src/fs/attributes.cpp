// SPDX-License-Identifier: LGPL-2.1-or-later
//
// getattr: 1 read (of a sealed directory 2; of one that is held here none for a second; of an unshared inode none).
// readlink: 1 read. fsync of a directory: what was answered and is not stored (name_log.cpp). setattr, one step for each
// kind, and 1 read for the answer; of an inode that the store does not have yet (unstored_inodes.h), none. Nor of a
// directory that is held here and unshared: there it goes behind the answer, as part of a batch (name_log.cpp), but for
// mode and owner of one with an access ACL.
//
//  # | object  | step                                                                | stop here leaves
//  - | Inode.X | [change attr] mode, owner, or setuid and setgid bits that a chown   | COMMIT of this part
//    |         | or truncate clears: guard `attr` as read; attr, ctime; a mode with  |
//    |         | an access ACL: guard its key as read, 1 read more                   |
//  - | Inode.X | [set times] of anything but a regular file: blind, with ctime       | COMMIT of this part
//  - |         | size and times of a regular file: under its lease (Files)           |
#include "fs/mode_bits.h"
#include "fs/namespace.h"
#include "fs/ownership.h"
#include "txn/attribute_txn.h"

namespace lccfs {

namespace {

Result<> check_changes(const Inode& view, const SetAttributes& changes) {
  if (!changes.size_bytes || view.attr.type == FileType::regular) return {};
  const auto code = view.is_directory() ? ErrorCode::is_directory : ErrorCode::invalid;
  return failure(code, format::inode_object(view.ino) + " is no regular file: it has no size to set");
}

/// What is left of it: the kernel leaves to us what a chown, and a truncate, take away of a file's mode and capability
/// (FUSE_HANDLE_KILLPRIV_V2). A request that changes nothing takes nothing: anybody may send it (chown(-1, -1)).
format::AttrRecord without_what_is_taken(format::AttrRecord attr, const Caller& caller, const SetAttributes& changes) {
  const bool is_chown = attr.type != FileType::directory && (changes.uid || changes.gid);
  const bool is_users_cut = changes.size_bytes && caller.uid != 0;
  if (!changes.mode && (is_chown || is_users_cut)) attr.mode = without_privileges(attr.mode);
  if (is_chown || changes.size_bytes) attr.flags &= ~format::attr_flag::capability;
  return attr;
}

void set_times_of(Inode& view, const txn::AttributeChange& times) {
  view.atime = times.atime.value_or(view.atime);
  view.mtime = times.mtime.value_or(view.mtime);
  view.ctime = times.ctime;
}

}  // namespace

/// A directory that was removed while it is open has no links, also before a collector has marked it.
Result<AttributesReply> Namespace::directory_reply_for(const Inode& view) {
  auto reply = reply_for(view);
  LCCFS_TRY(const bool removed, metadata_.was_removed(view));
  if (removed) reply.attributes.nlink = 0;
  return reply;
}

/// Whose name the kernel may keep: nothing but this reply refreshes what it believes. So it believes that for no time,
/// once others may change it; and its names no more, if the lease was lost.
Result<AttributesReply> Namespace::directory_reply_by_number(const Inode& view,
                                                             const std::optional<HeldDirectories::Ticket>& kept_as) {
  const bool is_lost = kept_as && !leases_.held.is_confirmed(*kept_as, view.directory_lease);
  LCCFS_TRY(auto reply, directory_reply_for(view));
  const bool is_covered = kept_as && !is_lost && metadata_.held_directory(view.ino);
  if (!is_covered && may_be_kept_by_name(view.ino)) reply.attributes_ttl = std::chrono::nanoseconds(0);
  return reply;
}

/// What its lease does not cover, the ctime of a directory that another client moves, is so no older than in a kernel.
std::optional<AttributesReply> Namespace::held_attributes(Ino ino) {
  const auto held = metadata_.held_directory(ino);
  if (!held) return std::nullopt;
  const auto trusted_for = held->sent + options_.attributes_ttl - now();
  if (trusted_for <= std::chrono::nanoseconds(0) || held->sealed()) return std::nullopt;
  auto reply = reply_for(*held);
  reply.attributes_ttl = std::min(reply.attributes_ttl, trusted_for);
  return reply;
}

/// While its lease is ours, memory has its size; what is kept is as of before.
std::optional<AttributesReply> Namespace::unshared_attributes(Ino ino) {
  const bool is_written = files_.holds(ino);
  auto known = metadata_.unshared(ino);
  if (!known) return std::nullopt;
  known->sent = now();  // nobody else can have changed it
  if (known->is_regular()) known->lease = is_written ? std::optional(instance_.id()) : std::nullopt;
  return known->is_regular() ? files_.known_reply_for(*known) : reply_for(*known);
}

std::optional<AttributesReply> Namespace::attributes_from_memory(Ino ino) {
  if (auto held = held_attributes(ino)) return held;
  return unshared_attributes(ino);
}

std::optional<AttributesReply> Namespace::known_attributes(Ino ino) {
  leases_.held.was_used(ino);
  return attributes_from_memory(ino);
}

Result<AttributesReply> Namespace::get_attributes(Ino ino) {
  if (const auto known = known_attributes(ino)) return *known;
  const bool was_told = look_anew_at(ino).has_value();
  auto reply = read_attributes(ino);
  if (was_told && reply) emptying_.forget(ino);
  return reply;
}

Result<AttributesReply> Namespace::read_attributes(Ino ino) {
  if (const auto held = metadata_.in_memory(ino); held && !held->is_directory()) return files_.get_attributes(ino);
  const auto kept_as = leases_.held.begin_read(ino);
  LCCFS_TRY(const auto view, metadata_.read_existing(ino, {.map = InodeParts::Map::whole}));
  if (view.is_directory()) return directory_reply_by_number(view, kept_as);
  if (view.lease && *view.lease != instance_.id()) return files_.get_attributes(ino);
  LCCFS_CHECK(instance_.see_fence(view.fence));
  return reply_for(view);
}

/// Of a directory that is held here, behind the answer. false: step by step; also where an access ACL has to follow.
Result<bool> Namespace::change_directory_behind(const Inode& known, const EditAttr& change) {
  Result<> allowed;
  const auto time = wall_time();
  const auto edit = [&](Inode& view) -> std::optional<MetaTxn> {
    if ((view.attr.flags & format::attr_flag::access_acl) != 0) return std::nullopt;
    allowed = change(view.attr);
    if (!allowed) return std::nullopt;
    auto step = txn::change_attr(view.ino, {view.attr_raw, view.attr}, time, 0, std::nullopt);
    view.attr_raw = encode(view.attr);
    view.ctime = time;
    return step;
  };
  LCCFS_TRY(const bool is_behind, metadata_.change_directory_behind(known.ino, edit, keep_behind(known.ino)));
  LCCFS_CHECK(allowed);
  return is_behind;
}

Result<> Namespace::set_mode_and_owner(const Caller& caller, const Inode& known, const SetAttributes& changes) {
  const bool changes_none = !changes.mode && !changes.uid && !changes.gid;
  if (changes_none && without_what_is_taken(known.attr, caller, changes) == known.attr) return {};
  const auto change = [&](format::AttrRecord& attr) -> Result<> {
    if (!changes_none) LCCFS_CHECK(check_is_owner(caller, known.ino, attr));
    attr = without_what_is_taken(attr, caller, changes);
    attr.mode = changes.mode.value_or(attr.mode) & permission_bits;
    attr.uid = changes.uid.value_or(attr.uid);
    attr.gid = changes.gid.value_or(attr.gid);
    if (changes.mode) attr.mode = mode_allowed(caller, attr);
    return {};
  };
  return or_stale(change_attr_of(known.ino, change, &known));
}

/// A mode that an access ACL has to follow is the store's. Memory knows of it then.
Result<bool> Namespace::change_unstored(const Inode& known, const EditAttr& change) {
  Inode changed = known;
  Result<> allowed;
  changed.ctime = wall_time();
  const bool is_done = instance_.unstored().edit(known.ino, [&](MetaTxn& create) {
    changed.attr = txn::attr_of(create);
    if ((changed.attr.flags & format::attr_flag::access_acl) != 0) return false;
    allowed = change(changed.attr);
    if (!allowed) return true;
    txn::change_new_inode(create, {.attr = changed.attr, .ctime = changed.ctime});
    changed.attr_raw = encode(changed.attr);
    changed.version = 0;
    attr_changed(changed);  // in the order of the edits
    return true;
  });
  LCCFS_CHECK(allowed);
  return is_done;
}

Result<> Namespace::change_attr_of(Ino ino, const EditAttr& change, const Inode* known) {
  if (known != nullptr) {  // what a directory's log has of it comes later than its creation
    LCCFS_TRY(const bool is_changed,
              known->is_directory() ? change_directory_behind(*known, change) : change_unstored(*known, change));
    if (is_changed) return {};
  }
  const HeldDirectories::NoChangesBehind none(leases_.held, ino);
  LCCFS_TRY(const auto changed, change_attr(instance_, ino, change, known, [this, ino](MetaTxn step) {
              return leases_.run_or_make_way(ino, std::move(step));
            }));
  attr_changed(changed);
  return {};
}

/// Of an inode that the store does not have yet, or a directory that is held here. false: by a step of its own.
Result<bool> Namespace::set_times_behind(const Inode& known, const txn::AttributeChange& times) {
  if (known.is_directory()) {
    const auto edit = [&times](Inode& view) -> std::optional<MetaTxn> {
      set_times_of(view, times);
      return txn::set_times(view.ino, times.atime, times.mtime, times.ctime);
    };
    return metadata_.change_directory_behind(known.ino, edit, keep_behind(known.ino));
  }
  return instance_.unstored().edit(known.ino, [&](MetaTxn& create) {
    txn::change_new_inode(create, times);
    metadata_.inodes.change(known.ino, std::nullopt, [&times](Inode& view) { set_times_of(view, times); });
    return true;
  });
}

Result<> Namespace::set_blind_times(const Inode& known, const SetAttributes& changes) {
  const txn::AttributeChange times{.atime = changes.atime, .mtime = changes.mtime, .ctime = wall_time()};
  LCCFS_TRY(const bool is_behind, set_times_behind(known, times));
  if (is_behind) return {};
  const HeldDirectories::NoChangesBehind none(leases_.held, known.ino);
  for (Attempts tries(instance_);;) {
    LCCFS_CHECK(tries.next());
    const auto time = wall_time();
    auto step = txn::set_times(known.ino, changes.atime, changes.mtime, time);
    const auto applied = or_stale(known.is_directory() ? leases_.run_repeatable(std::move(step))
                                                       : instance_.run_repeatable(std::move(step)));
    if (!applied && applied.error().code == ErrorCode::guard_failed) {
      LCCFS_CHECK(leases_.make_way(known.ino));
      continue;
    }
    if (!applied) return std::unexpected(applied.error());
    const txn::AttributeChange done{.atime = changes.atime, .mtime = changes.mtime, .ctime = time};
    metadata_.inodes.change(known.ino, applied->version, [&done](Inode& view) { set_times_of(view, done); });
    return {};
  }
}

/// The kernel takes the answer whatever it has been told meanwhile: of a directory whose name it keeps it believes that for
/// no time.
Result<AttributesReply> Namespace::set_attributes(const Caller& caller, Ino ino, const SetAttributes& changes) {
  LCCFS_CHECK(check_writable(options_));
  LCCFS_CHECK(check_as_told(ino));
  LCCFS_TRY(const auto known, metadata_.existing(ino));
  LCCFS_CHECK(check_changes(*known, changes));
  LCCFS_CHECK(set_mode_and_owner(caller, *known, changes));
  if (changes.size_bytes || changes.atime || changes.mtime) {
    if (known->attr.type == FileType::regular) {
      LCCFS_TRY(const auto reply, files_.set_size_and_times(ino, changes));
      if (reply) return *reply;
    } else {
      LCCFS_CHECK(set_blind_times(*known, changes));
    }
  }
  auto reply = get_attributes(ino);
  if (reply && may_be_kept_by_name(ino)) reply->attributes_ttl = std::chrono::nanoseconds(0);
  return reply;
}

Result<std::string> Namespace::read_link(Ino ino) {
  LCCFS_TRY(auto view, metadata_.read_existing(ino, {.payload = true}));
  if (view.attr.type == FileType::symlink) return std::move(view.payload);
  return failure(ErrorCode::invalid, format::inode_object(ino) + " is no symlink");
}

/// Its names, and the last name that it was given.
Result<> Namespace::sync_directory(Ino ino) {
  const auto synced = leases_.log.sync(ino);
  LCCFS_CHECK(instance_.check_not_fenced());
  return synced;
}

Result<> Namespace::sync_name_of(Ino ino) {
  if (!leases_.writes_behind()) return {};
  static_cast<void>(instance_.store_inode(ino));
  const auto synced = leases_.log.sync_name_of(ino);
  if (!synced) LCCFS_CHECK(instance_.check_not_fenced());
  return synced;
}

bool Namespace::has_name_to_sync(Ino ino) { return leases_.writes_behind() && leases_.log.has_name_to_sync(ino); }

}  // namespace lccfs
