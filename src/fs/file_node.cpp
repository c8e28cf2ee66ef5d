// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/file_node.h"

#include <algorithm>

namespace lccfs {

void FileNode::learn(InodeView read) {
  const std::lock_guard lock(mutex);
  const bool more_of_map = read.version == view.version && read.map_is_whole && !view.map_is_whole;
  if (!lease_held && (read.version > view.version || more_of_map)) {
    take(std::move(read));
  } else {
    learn_attr(read);
  }
}

void FileNode::learn_attr(const InodeView& newest) {
  if (newest.version < attr_version) return;
  view.attr = newest.attr;
  view.attr_raw = newest.attr_raw;
  view.ctime = newest.ctime;
  attr_version = newest.version;
  attr_sent = std::max(attr_sent, newest.sent);
}

void FileNode::take(InodeView read) {
  if (read.version >= attr_version) {
    learn_attr(read);
  } else {
    read.attr = view.attr;
    read.attr_raw = view.attr_raw;
    read.ctime = view.ctime;
  }
  view = std::move(read);
}

txn::FileChanges FileNode::take_dirty(bool with_times) {
  txn::FileChanges changes;
  if (size_dirty) changes.size_bytes = view.size_bytes;
  if (with_times && times_dirty) {
    changes.atime = view.atime;
    changes.mtime = view.mtime;
    changes.wtime = view.wtime;
    times_dirty = false;
  }
  for (const auto block : dirty_map_blocks) changes.map_blocks[block] = view.map.blocks().at(block);
  size_dirty = false;
  dirty_map_blocks.clear();
  if (!dirty()) dirty_since.reset();
  is_storing = true;
  return changes;
}

void FileNode::put_back(const txn::FileChanges& changes, std::chrono::nanoseconds now) {
  is_storing = false;
  size_dirty = size_dirty || changes.size_bytes.has_value();
  times_dirty = times_dirty || changes.wtime.has_value();
  for (const auto& [block, bits] : changes.map_blocks) dirty_map_blocks.insert(block);
  if (!dirty_since) dirty_since = now;
}

}  // namespace lccfs
