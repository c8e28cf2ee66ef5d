// SPDX-License-Identifier: LGPL-2.1-or-later
// Open files: handles, flush, fsync, release, and what happens once a second.
#include "base/log.h"
#include "format/object_names.h"
#include "fs/files_private.h"

namespace lccfs {

namespace {

constexpr std::chrono::seconds store_dirty_after{5};

/// From before the inode is read: a collector that has marked it dead asks after that mark.
class Opening {
 public:
  explicit Opening(FileNode& node) : node_(node) { count(1); }
  ~Opening() { count(-1); }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

 private:
  void count(int change) {
    const std::lock_guard lock(node_.mutex);
    node_.openings += static_cast<unsigned>(change);
  }
  FileNode& node_;
};

Error bad_handle() { return {ErrorCode::bad_handle, "not an open file"}; }

}  // namespace

Result<OpenReply> Files::open(const Caller& caller, Ino ino, int flags) {
  auto node = private_->node(ino);
  auto reply = open_node(caller, node, flags);
  private_->let_go(std::move(node));
  return reply;
}

Result<OpenReply> Files::open_node(const Caller& caller, const std::shared_ptr<FileNode>& node, int flags) {
  auto& me = *private_;
  const Opening opening(*node);
  auto view = me.read_told(node->ino, WriteLease::Ask::for_opening);
  if (!view || !view->live()) {
    if (view || view.error().code == ErrorCode::not_found) {
      return failure(ErrorCode::stale, format::inode_object(node->ino) + " is gone");
    }
    return std::unexpected(std::move(view).error());
  }
  if (view->is_directory()) return failure(ErrorCode::is_directory, format::inode_object(node->ino));
  node->learn(*view);
  const bool bypass = bypasses_pages(flags);
  const bool keep = me.kernel.opened(*view, me.holder_of(*view), !bypass);
  const HandleId handle = me.add_handle(node, flags);
  if (view->lease_is_over && !me.instance.read_only()) me.clean_up_behind(node, *view->lease);
  if ((flags & O_TRUNC) != 0) {  // whether the caller may, the kernel has checked, O_RDONLY too
    auto cut = empty(caller, *node);
    if (!cut) {
      me.drop_handle(handle);
      return std::unexpected(std::move(cut).error());
    }
  }
  // Close-to-open: what is not as the kernel was last told, it forgets before the open is answered.
  bool leased_here = false;
  me.kernel.drop_attributes_unless(
      attributes_of(me.overlay(*view, leased_here), me.instance.super().object_size_bytes));
  return OpenReply{.handle = handle, .keep_pages = keep, .bypass_pages = bypass};
}

/// As a write of all bytes would, this clears the setuid bits: the kernel leaves that to whoever truncates at open.
Result<> Files::empty(const Caller& caller, FileNode& node) {
  const AloneInGate alone(node.gate);
  LCCFS_CHECK(private_->io.clear_privileges(node, caller));
  return private_->resize_alone(node, 0);
}

void Files::is_mapped(HandleId id) {
  const std::lock_guard lock(private_->mutex);
  const auto found = private_->handles.find(id);
  if (found == private_->handles.end() || std::exchange(found->second.uses_pages, true)) return;
  private_->kernel.mapped(found->second.node->ino);
}

void Files::read(HandleId id, std::uint64_t offset, std::span<char> target, FileSystem::ReadDone done) {
  auto handle = private_->handle(id);
  if (!handle) return done(std::unexpected(bad_handle()));
  private_->io.read(std::move(handle->node), offset, target, std::move(done));
}

void Files::write(HandleId id, WriteRequest request, FileSystem::WriteDone done) {
  auto handle = private_->handle(id);
  if (!handle || !for_writing(handle->flags)) return done(std::unexpected(bad_handle()));
  const bool appends = (request.flags & O_APPEND) != 0 && !request.writes_back_pages;
  const bool bypass = (bypasses_pages(handle->flags) || (request.flags & O_DIRECT) != 0) && !request.writes_back_pages;
  const auto pages = bypass ? DataIo::Pages::passed_by : DataIo::Pages::written;
  if (appends) return private_->io.append(std::move(handle->node), std::move(request), pages, std::move(done));
  private_->io.write(std::move(handle->node), std::move(request), pages, std::move(done));
}

Result<> Files::flush(HandleId id) {
  const auto handle = private_->handle(id);
  if (!handle) return std::unexpected(bad_handle());
  if (!for_writing(handle->flags)) return {};
  return private_->give_back_or_store(*handle->node, 1, Private::Dirty::is_stored);
}

/// Every write that was answered is in the store already: what is left is the size, the map's beliefs and the times.
Result<> Files::fsync(HandleId id, bool data_only) {
  const auto handle = private_->handle(id);
  if (!handle) return std::unexpected(bad_handle());
  if (private_->instance.fenced()) return failure(ErrorCode::fenced, "this client was fenced");
  return private_->lease.store_dirty(*handle->node, !data_only);
}

void Files::release(HandleId id) {
  auto node = private_->drop_handle(id);
  if (!node) return;
  auto stored = private_->give_back_or_store(*node, 0, Private::Dirty::is_stored);
  if (!stored) log::error(format::inode_object(node->ino) + ": closing it: " + stored.error().context);
  private_->let_go(std::move(node));
}

void Files::forget(Ino ino) { private_->kernel.forget(ino); }

void Files::tick() {
  auto& me = *private_;
  std::vector<std::shared_ptr<FileNode>> nodes;
  {
    const std::lock_guard lock(me.mutex);
    for (const auto& [ino, node] : me.nodes) nodes.push_back(node);
  }
  const auto now = me.instance.clock().elapsed();
  for (auto& node : nodes) {
    bool due = false;
    {
      const std::lock_guard lock(node->mutex);
      due = node->dirty_since && now - *node->dirty_since >= store_dirty_after;
      if (due && std::exchange(node->store_is_posted, true)) continue;
    }
    if (!due) {
      me.let_go(std::move(node));
      continue;
    }
    me.post([&me, node] {
      auto stored = me.lease.store_dirty(*node, true);
      if (!stored) log::error(format::inode_object(node->ino) + ": storing its size: " + stored.error().context);
      const std::lock_guard lock(node->mutex);
      node->store_is_posted = false;
    });
  }
}

Result<> Files::give_back_everything() {
  std::vector<std::shared_ptr<FileNode>> nodes;
  {
    const std::lock_guard lock(private_->mutex);
    for (const auto& [ino, node] : private_->nodes) nodes.push_back(node);
  }
  Result<> result;
  for (const auto& node : nodes) {
    auto given = private_->give_back_alone(*node);
    if (!given) result = std::move(given);
  }
  return result;
}

}  // namespace lccfs
