// SPDX-License-Identifier: LGPL-2.1-or-later
//
// getattr: 1 read (of a sealed directory 2). setattr, one step for each kind, and 1 read for the answer:
//
//  - | Inode.X | mode, owner: guard `attr` as read; attr, ctime             | COMMIT of this part
//  - | Inode.X | times of anything but a regular file: blind, with ctime    | COMMIT of this part
//  - |         | size and times of a regular file: under its lease (Files)  |
#include "fs/mode_bits.h"
#include "fs/namespace_private.h"
#include "txn/attribute_txn.h"

namespace lccfs {

namespace {

Result<> check_changes(const InodeView& view, const SetAttributes& changes) {
  if (!changes.size_bytes || view.attr.type == FileType::regular) return {};
  const auto code = view.is_directory() ? ErrorCode::is_directory : ErrorCode::invalid;
  return failure(code, format::inode_object(view.ino) + " is no regular file: it has no size to set");
}

}  // namespace

void Namespace::Private::directory_changed(Ino directory, std::uint64_t version, TimeSpec time,
                                           const txn::SubdirectoryCount* nsub) {
  inodes.change(directory, version, [time, nsub](InodeView& view) {
    view.mtime = view.ctime = time;
    if (nsub == nullptr) return;
    view.nsub = nsub->changed;
    view.nsub_raw = encode(format::NumberRecord{nsub->changed});
  });
}

/// A directory that was removed while it is open has no links, also before a collector has marked it.
Result<AttributesReply> Namespace::Private::directory_reply_for(const InodeView& view) {
  auto reply = reply_for(view);
  LCCFS_TRY(const bool removed, was_removed(view));
  if (removed) reply.attributes.nlink = 0;
  return reply;
}

Result<AttributesReply> Namespace::get_attributes(Ino ino) {
  auto& my = *private_;
  if (const auto held = my.held(ino); held && !held->is_directory()) return my.files.get_attributes(ino);
  const auto view = my.read(ino, {.map = InodeParts::Map::whole});
  if (!view) return std::unexpected(gone_is_stale(view.error()));
  if (view->is_directory()) return my.directory_reply_for(*view);
  if (view->lease && *view->lease != my.instance.id()) return my.files.get_attributes(ino);
  LCCFS_CHECK(my.instance.see_fence(view->fence));
  return my.reply_for(*view);
}

void Namespace::Private::attr_changed(const InodeView& changed) {
  inodes.change(changed.ino, changed.version, [&changed](InodeView& view) {
    view.attr = changed.attr;
    view.attr_raw = changed.attr_raw;
    view.ctime = changed.ctime;
  });
  files.attributes_changed(changed);
}

Result<> Namespace::Private::set_mode_and_owner(const InodeView& known, const SetAttributes& changes) {
  const auto change = [&changes](format::AttrRecord& attr) -> Result<> {
    attr.mode = changes.mode.value_or(attr.mode) & permission_bits;
    attr.uid = changes.uid.value_or(attr.uid);
    attr.gid = changes.gid.value_or(attr.gid);
    return {};
  };
  const auto changed = change_attr(instance, known.ino, change, &known);
  if (!changed) return std::unexpected(gone_is_stale(changed.error()));
  attr_changed(*changed);
  return {};
}

Result<> Namespace::Private::set_blind_times(Ino ino, const SetAttributes& changes) {
  const auto time = wall_time();
  const auto applied = instance.run_repeatable(txn::set_times(ino, changes.atime, changes.mtime, time));
  if (!applied) return std::unexpected(gone_is_stale(applied.error()));
  inodes.change(ino, applied->version, [&changes, time](InodeView& view) {
    view.ctime = time;
    view.atime = changes.atime.value_or(view.atime);
    view.mtime = changes.mtime.value_or(view.mtime);
  });
  return {};
}

Result<AttributesReply> Namespace::set_attributes(const Caller&, Ino ino, const SetAttributes& changes) {
  auto& my = *private_;
  LCCFS_CHECK(my.check_writable());
  LCCFS_TRY(const auto known, my.existing_inode(ino));
  LCCFS_CHECK(check_changes(*known, changes));
  if (changes.mode || changes.uid || changes.gid) LCCFS_CHECK(my.set_mode_and_owner(*known, changes));
  if (changes.size_bytes || changes.atime || changes.mtime) {
    if (known->attr.type == FileType::regular) return my.files.set_size_and_times(ino, changes);
    LCCFS_CHECK(my.set_blind_times(ino, changes));
  }
  return get_attributes(ino);
}

Result<std::string> Namespace::read_link(Ino ino) {
  const auto view = private_->read(ino, {.payload = true, .extra_ranges = {}, .keys = {}});
  if (!view) return std::unexpected(gone_is_stale(view.error()));
  if (view->attr.type != FileType::symlink) {
    return failure(ErrorCode::invalid, format::inode_object(ino) + " is no symlink");
  }
  return view->payload;
}

/// Every step that was answered is durable.
Result<> Namespace::sync_directory(Ino) {
  if (private_->instance.fenced()) return failure(ErrorCode::fenced, "this client was fenced");
  return {};
}

}  // namespace lccfs
