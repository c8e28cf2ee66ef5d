// SPDX-License-Identifier: LGPL-2.1-or-later
// Size and times of regular files.
#include "format/object_names.h"
#include "fs/files_private.h"

namespace lccfs {

Result<AttributesReply> Files::get_attributes(Ino ino) {
  auto view = private_->read_told(ino, WriteLease::Ask::for_attributes);
  if (!view) return std::unexpected(gone_is_stale(std::move(view).error()));
  return private_->reply(*view);
}

/// truncate (step table: write_lease.cpp). The caller is alone in the gate.
Result<> Files::Private::resize_alone(FileNode& node, std::uint64_t size_bytes) {
  if (size_bytes > format::file_size_limit_bytes) {
    return failure(ErrorCode::file_too_large, "a file has at most 2^63 - 1 bytes");
  }
  const std::lock_guard one_step(node.lease_mutex);  // nobody else stores a size that is then taken back
  LCCFS_CHECK(lease.ensure(node));
  LCCFS_CHECK(lease.clean_tail(node));
  std::uint64_t size_before = 0;
  {
    const std::lock_guard lock(node.mutex);
    size_before = node.view.size_bytes;
    node.view.size_bytes = size_bytes;
    node.view.mtime = node.view.wtime = instance.clock().wall_time();
    node.mark_dirty(true, instance.clock().elapsed());
  }
  // Also where the size stays: a holder that was evicted learns by this step that it is none any more.
  auto stored = lease.store_dirty_now(node, true);
  if (!stored) {
    const std::lock_guard lock(node.mutex);
    node.view.size_bytes = size_before;
    node.mark_dirty(true, instance.clock().elapsed());  // the step may have been applied all the same
    return stored;
  }
  if (size_bytes >= size_before) return {};
  {
    const std::lock_guard lock(node.mutex);
    node.tail_is_dirty = true;  // should the cut fail: nothing else is done before it is made good
  }
  return lease.clean_tail(node);
}

Result<> Files::Private::change_times_alone(FileNode& node, const SetAttributes& changes) {
  const std::lock_guard one_step(node.lease_mutex);
  LCCFS_CHECK(lease.ensure(node));
  const std::lock_guard lock(node.mutex);
  node.view.atime = changes.atime.value_or(node.view.atime);
  node.view.mtime = changes.mtime.value_or(node.view.mtime);
  node.view.wtime = instance.clock().wall_time();
  node.mark_dirty(false, instance.clock().elapsed());
  return {};
}

Result<AttributesReply> Files::set_size_and_times(Ino ino, const SetAttributes& changes) {
  auto node = private_->node(ino);
  auto reply = change_node(*node, changes);
  private_->let_go(std::move(node));
  if (!reply) return std::unexpected(gone_is_stale(std::move(reply).error()));
  return reply;
}

Result<AttributesReply> Files::change_node(FileNode& node, const SetAttributes& changes) {
  auto& me = *private_;
  bool wants_lease = changes.size_bytes.has_value();
  {
    const std::lock_guard lock(node.mutex);
    wants_lease = wants_lease || node.lease_held || node.writers > 0;
  }
  if (!wants_lease) {
    auto view = me.lease.change_unleased(node.ino, [&](const InodeView& old) {
      return txn::FileChanges{.size_bytes = {},
                              .atime = changes.atime.value_or(old.atime),
                              .mtime = changes.mtime.value_or(old.mtime),
                              .wtime = me.instance.clock().wall_time(),
                              .map_blocks = {}};
    });
    if (view) return reply_for(*view);
    if (view.error().code != ErrorCode::busy) return std::unexpected(std::move(view).error());
  }
  {
    const AloneInGate alone(node.gate);
    if (changes.size_bytes) LCCFS_CHECK(me.resize_alone(node, *changes.size_bytes));
    if (changes.atime || changes.mtime) LCCFS_CHECK(me.change_times_alone(node, changes));
  }
  LCCFS_CHECK(me.give_back_or_store(node, 0, Private::Dirty::may_stay));
  return get_attributes(node.ino);
}

}  // namespace lccfs
