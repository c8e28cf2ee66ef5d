// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Handles of files. The kernel sends a flush for each close of a descriptor, and a release after the last one.
//
//  open           | object   | step                                                | stop here leaves
//  -              | Inode.X  | read; if another instance holds the lease, it       |
//                 |          | stores its size first, or is expired. Not where the |
//                 |          | lease is ours, if Super has shown lately that this  |
//                 |          | client is not fenced                                |
//  1              | Inode.X  | O_TRUNC: clear privileges (data_privileges.cpp)     | all bytes, and no setuid bit
//  2, 3           |          | O_TRUNC: truncate to 0 (truncate.cpp)               |
//  later          |          | the holder is expired: take over, release, both in  |
//                 |          | lease.cpp                                           |
//
//  fsync          | object   | step                                                | stop here leaves
//  0              | Data.X.* | write out what is buffered                          | nothing is promised: the fsync
//                 |          |                                                     | has no answer yet
//  1              | Inode.X  | store what is dirty (file_node.cpp): size, believed | the same
//                 |          | bits and, except for fdatasync, times               |
//  2              | Inode.P  | names=behind, and the name that X was given last is | the same
//                 |          | not stored: [store names] (name_log.cpp): that      |
//                 |          | name, and what was answered before it in P          |
//
//  flush, release | object   | step                                                | stop here leaves
//  0              | Data.X.* | write out what is buffered                          | what no fsync covered is lost
//  0              | Inode.X  | X was not sent yet, and the close does not leave it | X with its lease
//                 |          | to the batch of its name: [create inode]            |
//  1              | Inode.X  | another handle writes: store what is dirty; none    | growth that no fsync covered is lost
//                 |          | does: release the lease, if it is held              |
#include "base/expected_errors.h"
#include "base/log.h"
#include "format/object_names.h"
#include "fs/files.h"

namespace lccfs {

namespace {

/// From before the inode is read: a collector that has marked it dead asks after that mark.
class Opening {
 public:
  explicit Opening(FileNode& node) : node_(node) {
    const Lock lock(node_.mutex);
    ++node_.openings;
  }
  ~Opening() {
    const Lock lock(node_.mutex);
    --node_.openings;
  }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

 private:
  FileNode& node_;
};

Error bad_handle() { return {ErrorCode::bad_handle, "not an open file"}; }

}  // namespace

/// But for the handle.
OpenReply Files::opened(const Inode& view, int flags) {
  using Holder = KernelView::Holder;
  const bool bypass = bypasses_pages(flags);
  auto holder = view.lease ? Holder::another : Holder::nobody;
  if (view.lease == instance_.id()) holder = Holder::me;
  return {.handle = {}, .keep_pages = kernel_.opened(view, holder, !bypass), .bypass_pages = bypass};
}

/// A mapping of a direct descriptor counts once it reads a page: it is to find none that nobody is counted for. After
/// that a close of those who are counted sees to it.
HandleId Files::add_handle(const OpenFiles::Use& node, int flags) {
  const auto handle = open_files_.add(node, flags);
  if (may_be_mapped_directly(flags)) kernel_.drop_unused_pages(node->ino);
  return handle;
}

OpenReply Files::open_new(const Inode& view, int flags) {
  auto reply = opened(view, flags);
  const auto node = open_files_.use(view.ino);
  reply.handle = add_handle(node, flags);
  const Lock lock(node->mutex);
  node->is_being_made = false;
  return reply;
}

Result<OpenReply> Files::open(const Caller& caller, Ino ino, int flags, bool believes_leases) {
  return open_node(caller, open_files_.use(ino), flags, believes_leases);
}

/// Under its lease memory has the file, and no collector takes it.
std::optional<Inode> Files::leased_view(FileNode& node) {
  if (!node.held() || !instance_.unstored().need(node.ino)) return std::nullopt;
  const Lock lock(node.mutex);
  if (!node.lease_held || node.may_be_released || !node.view.map_is_whole) return std::nullopt;
  Inode view = node.view;
  view.lease = instance_.id();
  return view;
}

Result<OpenReply> Files::open_node(const Caller& caller, const OpenFiles::Use& node, int flags, bool believes_leases) {
  const Opening opening(*node);
  auto known = believes_leases ? leased_view(*node) : std::nullopt;
  const bool is_known = known.has_value();
  LCCFS_TRY(const auto view, or_none(is_known ? Result<Inode>(std::move(*known))
                                              : read_told(node->ino, LeaseHolders::Ask::for_opening)));
  if (!view || !view->live()) return failure(ErrorCode::stale, format::inode_object(node->ino) + " is gone");
  if (view->is_directory()) return failure(ErrorCode::is_directory, format::inode_object(node->ino));
  if (!is_known) node->learn(*view);
  auto reply = opened(*view, flags);
  reply.handle = add_handle(node, flags);
  if (view->holder_is_expired && !instance_.read_only()) clean_up_after(node, *view->lease);
  if ((flags & O_TRUNC) != 0) {  // whether the caller may, the kernel has checked, O_RDONLY too
    auto cut = empty(caller, *node);
    if (!cut) {
      open_files_.drop(reply.handle);
      return std::unexpected(std::move(cut).error());
    }
  }
  // Close-to-open: what is not as the kernel was last told, it forgets before the open is answered.
  bool leased_here = false;
  kernel_.drop_attributes_unless(current_attributes(*view, leased_here));
  return reply;
}

/// As a write of all bytes would, this clears the setuid bits: at an open the kernel leaves that to the file system.
Result<> Files::empty(const Caller& caller, FileNode& node) {
  const AloneInGate alone(node.gate);
  LCCFS_CHECK(io_.clear_privileges(node, caller));
  auto cut = node.truncate(0);
  announcements_.changed(node);
  return cut;
}

/// As an open makes it: what another client has written under its lock is seen under ours (docs/LOCKS.md section 6).
Result<> Files::refresh(FileNode& node, const std::stop_token& stop) {
  kernel_.wait_for_changes(node.ino);
  LCCFS_TRY(const auto view, or_stale(read_told(node.ino, LeaseHolders::Ask::for_opening, stop)));
  node.learn(view);
  look_again(view);
  return {};
}

bool Files::is_put_off_by_lock(Ino ino) {
  const auto node = open_files_.use_existing(ino);
  return node && node->is_put_off_by_lock();
}

void Files::changed_elsewhere(Ino ino) {
  kernel_.changed_elsewhere(ino, [this, ino] { return !is_put_off_by_lock(ino); });
}

void Files::look_again(const Inode& view) {
  static_cast<void>(opened(view, O_DIRECT));
  bool leased_here = false;
  kernel_.drop_attributes_unless(current_attributes(view, leased_here));
}

/// This client has lost its watch for a while: nobody could tell it what has changed.
void Files::begin_anew() {
  for (const auto& node : open_files_.use_all()) {
    if (node->opener_key->is_open()) changed_elsewhere(node->ino);
  }
  opener_keys_.begin_anew();
}

bool Files::is_written(const FileNode& node) {
  const Lock lock(node.mutex);
  return node.writers > 0;
}

void Files::read(HandleId id, std::uint64_t offset, std::span<char> target, FileSystem::ReadDone done) {
  auto handle = open_files_.handle(id);
  if (!handle) return done(std::unexpected(bad_handle()));
  io_.read(std::move(handle->node), offset, target, std::move(done));
}

void Files::write(HandleId id, WriteRequest request, FileSystem::WriteDone done) {
  auto handle = open_files_.handle(id);
  if (!handle || !for_writing(handle->flags)) return done(std::unexpected(bad_handle()));
  const bool appends = (request.flags & O_APPEND) != 0 && !request.writes_back_pages;
  const bool bypass = (bypasses_pages(handle->flags) || (request.flags & O_DIRECT) != 0) && !request.writes_back_pages;
  const auto pages = bypass ? DataIo::Pages::passed_by : DataIo::Pages::written;
  if (appends) return io_.append(std::move(handle->node), std::move(request), pages, std::move(done));
  io_.write(std::move(handle->node), std::move(request), pages, std::move(done));
}

/// The lease goes if no other handle writes (`own_writers`: of the caller's). If it stays, what is dirty is stored, or
/// may stay in memory for now. A new file's inode is stored first: were its step left to the batch of its name, with the
/// release in it, nobody would be told that it is refused.
Result<> Files::release_or_store(FileNode& node, unsigned own_writers, Dirty dirty) {
  bool keep = false;
  {
    const Lock lock(node.mutex);
    if (!node.lease_held) return {};
    keep = node.writers > own_writers;
  }
  if (dirty == Dirty::is_stored && instance_.unstored().is_unsent(node.ino)) {
    LCCFS_CHECK(instance_.store_inode(node.ino));
  }
  if (keep) return dirty == Dirty::is_stored ? node.store_dirty(true) : Result<>{};
  if (dirty == Dirty::may_stay && idle_leases_.keep(node)) return {};
  const AloneInGate alone(node.gate);
  return node.release();
}

/// One handle is flushed by each close of a descriptor of it, a child's at its end, too: so nothing is lost here, and an
/// error is told by the next flush and the next fsync again.
Result<> Files::flush(HandleId id, const IsHeard& is_heard) {
  const auto handle = open_files_.handle(id);
  if (!handle) return std::unexpected(bad_handle());
  if (const auto known = flush_at_once(id, *handle, is_heard)) return *known;
  auto stored = handle->node->write_out();
  if (stored) stored = release_or_store(*handle->node, 1, Dirty::is_stored);
  if (!stored && is_heard()) handle->node->is_told_of_buffer();
  LCCFS_CHECK(error_of_close(id, is_heard));
  return stored;
}

/// The kernel throws away what it is answered for a process that ends: others are to be told.
Result<> Files::error_of_close(HandleId id, const IsHeard& is_heard) {
  auto error = open_files_.late_error(id, OpenFiles::Told::nobody);
  if (error || !is_heard()) return error;
  return open_files_.late_error(id, OpenFiles::Told::is_repeated);
}

std::optional<Result<>> Files::known_flush(HandleId id, const IsHeard& is_heard) {
  const auto handle = open_files_.handle(id);
  if (!handle || handle->node->locks.is_held()) return std::nullopt;
  return flush_at_once(id, *handle, is_heard);
}

/// nullopt: it is to be stored.
std::optional<Result<>> Files::flush_at_once(HandleId id, const FileHandle& handle, const IsHeard& is_heard) {
  if (!for_writing(handle.flags)) return Result<>{};
  if (!idle_leases_.may_keep(*handle.node)) return std::nullopt;
  return error_of_close(id, is_heard);
}

Result<> Files::fsync(HandleId id, bool data_only) {
  const auto handle = open_files_.handle(id);
  if (!handle) return std::unexpected(bad_handle());
  LCCFS_CHECK(instance_.check_not_fenced());
  auto stored = handle->node->store_dirty(!data_only);
  if (!stored) handle->node->is_told_of_buffer();
  LCCFS_CHECK(open_files_.late_error(id, OpenFiles::Told::once));
  return stored;
}

/// While the handle counts, or the lease is held, no collector takes the file: its last bytes are written before it
/// goes.
void Files::release(HandleId id) {
  locks_.drop(id);
  auto handle = open_files_.handle(id);
  if (!handle) return;
  const bool writes = for_writing(handle->flags);
  const bool is_kept = writes ? idle_leases_.keep(*handle->node) : idle_leases_.may_keep(*handle->node);
  if (!is_kept) static_cast<void>(handle->node->write_out());
  handle.reset();  // so that the node can be forgotten
  const auto node = open_files_.drop(id);
  if (!node) return;
  if (is_kept) {
    if (writes) idle_leases_.release_if_many(node);
    return;
  }
  auto stored = release_or_store(*node, 0, Dirty::is_stored);
  if (!stored && !is_written(*node) && !idle_leases_.keep_unstored(*node)) {
    const AloneInGate alone(node->gate);
    stored = node->release_at_any_price();
  }
  if (!stored) log::failed(log::Level::error, format::inode_object(node->ino) + ": closing it", stored.error());
}

}  // namespace lccfs
