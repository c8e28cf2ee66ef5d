// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/open_files.h"

#include <utility>

namespace lccfs {

OpenFiles::Use OpenFiles::use(Ino ino) {
  const Lock lock(mutex_);
  auto& found = nodes_[ino];
  if (!found) found = std::make_shared<FileNode>(ino, instance_, holders_, kernel_, room_, stored_handler);
  return {*this, found};
}

OpenFiles::Use OpenFiles::use_existing(Ino ino) { return {*this, existing(ino)}; }

OpenFiles::Node OpenFiles::existing(Ino ino) const {
  const Lock lock(mutex_);
  const auto found = nodes_.find(ino);
  return found == nodes_.end() ? nullptr : found->second;
}

std::vector<OpenFiles::Use> OpenFiles::use_all() {
  const Lock lock(mutex_);
  std::vector<Use> all;
  all.reserve(nodes_.size());
  for (const auto& [ino, node] : nodes_) all.emplace_back(*this, node);
  return all;
}

void OpenFiles::let_go(const Node& node) {
  const Lock lock(mutex_);
  const Lock node_lock(node->mutex);
  // All references come from the table: two of them are the table's own and ours.
  if (node.use_count() == 2 && node->handles == 0 && !node->lease_held && !node->opener_key->is_needed()) {
    nodes_.erase(node->ino);
  }
}

HandleId OpenFiles::add(const Use& node, int flags) {
  const Lock lock(mutex_);
  const HandleId id{next_handle_++};
  const Lock node_lock(node->mutex);
  handles_[id] = {node.node_, flags, !bypasses_pages(flags), node->errors_seen};
  ++node->handles;
  if (!bypasses_pages(flags)) node->opener_key->opened();
  if (may_be_mapped_directly(flags)) ++node->direct_handles;
  if (for_writing(flags)) {
    ++node->writers;
    node->idle_since.reset();
  }
  return id;
}

std::optional<FileHandle> OpenFiles::handle(HandleId id) const {
  const Lock lock(mutex_);
  const auto found = handles_.find(id);
  if (found == handles_.end()) return std::nullopt;
  return found->second;
}

void OpenFiles::is_mapped(HandleId id) {
  const Lock lock(mutex_);
  const auto found = handles_.find(id);
  if (found == handles_.end() || std::exchange(found->second.uses_pages, true)) return;
  kernel_.mapped(found->second.node->ino);
  found->second.node->opener_key->opened();
}

Result<> OpenFiles::late_error(HandleId id, Told told) {
  const auto open = handle(id);
  if (!open) return {};
  const auto errors = open->node->buffer->errors();
  const Lock lock(mutex_);
  const auto found = handles_.find(id);
  if (found == handles_.end() || found->second.errors_told >= errors.count) return {};
  if (told == Told::once) found->second.errors_told = errors.count;
  if (told != Told::nobody) {
    const Lock node_lock(found->second.node->mutex);
    found->second.node->errors_seen = errors.count;
    found->second.node->told_of_puts = errors.puts;
  }
  return std::unexpected(*errors.last);
}

void OpenFiles::count(MountCounts& counts) const {
  const Lock lock(mutex_);
  counts.open_handles = handles_.size();
  for (const auto& [ino, node] : nodes_) {
    const Lock node_lock(node->mutex);
    if (node->handles > 0) ++counts.open_files;
    if (node->lease_held) ++counts.leases;
  }
}

OpenFiles::Use OpenFiles::drop(HandleId id) {
  const Lock lock(mutex_);
  const auto dropped = handles_.extract(id);
  if (!dropped) return {*this, nullptr};
  const auto& [node, flags, uses_pages, errors_told] = dropped.mapped();
  const Lock node_lock(node->mutex);
  --node->handles;
  if (for_writing(flags)) --node->writers;
  if (may_be_mapped_directly(flags)) --node->direct_handles;
  if (uses_pages) {
    kernel_.closed(node->ino, node->direct_handles != 0);
    node->opener_key->closed();
  }
  return {*this, node};
}

}  // namespace lccfs
