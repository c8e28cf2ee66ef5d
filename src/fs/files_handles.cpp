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

Result<OpenReply> Files::open(Ino ino, int flags) {
  auto node = private_->node(ino);
  auto reply = open_node(node, flags);
  private_->let_go(std::move(node));
  return reply;
}

Result<OpenReply> Files::open_node(const std::shared_ptr<FileNode>& node, int flags) {
  auto& me = *private_;
  const Opening opening(*node);
  auto view = me.read_told(node->ino, true);
  if (!view || !view->live()) {
    if (view || view.error().code == ErrorCode::not_found) {
      return failure(ErrorCode::stale, format::inode_object(node->ino) + " is gone");
    }
    return std::unexpected(std::move(view).error());
  }
  if (view->is_directory()) return failure(ErrorCode::is_directory, format::inode_object(node->ino));
  node->learn(*view);
  const HandleId handle = me.add_handle(node, flags);
  if ((flags & O_TRUNC) != 0 && for_writing(flags)) {
    const AloneInGate alone(node->gate);
    auto cut = me.resize_alone(*node, 0);
    if (!cut) {
      me.drop_handle(handle);
      return std::unexpected(std::move(cut).error());
    }
  }
  return OpenReply{handle, me.kernel_is_up_to_date(*view)};
}

/// Close-to-open: if the file is not what the kernel was last told, it forgets the attributes before open is answered,
/// and its cached pages are not kept.
bool Files::Private::kernel_is_up_to_date(const InodeView& view) {
  bool leased_here = false;
  const auto now = told_of(attributes_of(overlay(view, leased_here), instance.super().object_size_bytes));
  {
    const std::lock_guard lock(mutex);
    const auto found = told.find(view.ino);
    if (found != told.end() && found->second == now) return true;
  }
  tell_kernel([&view](KernelCache& cache) { cache.invalidate_attributes(view.ino); });
  return false;
}

void Files::read(HandleId id, std::uint64_t offset, std::span<char> target, FileSystem::ReadDone done) {
  auto handle = private_->handle(id);
  if (!handle) return done(std::unexpected(bad_handle()));
  private_->io.read(std::move(handle->node), offset, target, std::move(done));
}

void Files::write(const Caller& caller, HandleId id, std::uint64_t offset, SharedBytes bytes,
                  FileSystem::WriteDone done) {
  auto handle = private_->handle(id);
  if (!handle || !for_writing(handle->flags)) return done(std::unexpected(bad_handle()));
  if ((handle->flags & O_APPEND) != 0) {
    return private_->io.append(caller, std::move(handle->node), offset, std::move(bytes), std::move(done));
  }
  private_->io.write(caller, std::move(handle->node), offset, std::move(bytes), std::move(done));
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

void Files::forget(Ino ino) {
  const std::lock_guard lock(private_->mutex);
  private_->told.erase(ino);
}

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
