// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Writing. The hot path (lease held, objects mapped, no setuid bit to clear) is the data write and nothing else.
//
//  write  | object   | step                                         | stop here leaves
//  0      | Inode.X  | the lease (write_lease.cpp), once            |
//  1      | Inode.X  | "may exist" bits of the objects, if not set  | bits that promise nothing
//  2      | Data.X.* | write (all extents together)                 | below the size: old, new or torn bytes, as on a
//         |          |                                              | disk; past it: cut at the take-over
//  -      | memory   | size and times, stored at fsync, flush,      | growth that no fsync covered is lost
//         |          | give-back                                    |
//  3      | Inode.X  | O_DSYNC: size and map, if dirty; O_SYNC:     | the same: the write is not answered yet
//         |          | times too                                    |
#include <fcntl.h>

#include <algorithm>
#include <future>

#include "format/layout.h"
#include "format/object_names.h"
#include "fs/data_io.h"
#include "fs/mode_bits.h"

namespace lccfs {

namespace {
constexpr std::uint64_t most_objects_ahead = 16;
}  // namespace

struct DataIo::WriteOp {
  std::shared_ptr<FileNode> node;
  WriteRequest request;
  std::uint64_t offset = 0;  // of an append: known once it is alone
  Pages pages = Pages::written;
  FileSystem::WriteDone done;
  std::function<void()> leave;  // the gate, for those who entered it
  bool alone = false;           // an append: its thread waits, cleans up and answers

  std::atomic<std::size_t> pending{0};
  std::mutex error_mutex;
  std::optional<Error> error;

  std::uint64_t size_bytes() const { return request.bytes.size_bytes; }
  std::uint64_t end() const { return offset + size_bytes(); }
  bool syncs_data() const { return (request.flags & O_DSYNC) != 0; }
  bool syncs_times() const { return (request.flags & O_SYNC) == O_SYNC; }
};

void DataIo::write(std::shared_ptr<FileNode> node, WriteRequest request, Pages pages, FileSystem::WriteDone done) {
  const auto size_bytes = request.bytes.size_bytes;
  if (size_bytes > format::file_size_limit_bytes || request.offset_bytes > format::file_size_limit_bytes - size_bytes) {
    return done(failure(ErrorCode::file_too_large, "a file has at most 2^63 - 1 bytes"));
  }
  auto op = std::make_shared<WriteOp>();
  op->node = std::move(node);
  op->offset = request.offset_bytes;
  op->request = std::move(request);
  op->pages = pages;
  op->done = std::move(done);
  const ByteRange range{op->offset, op->end()};
  op->leave = [gate = &op->node->gate, range] { gate->leave_write(range); };
  op->node->gate.enter_write(range, [this, op] { begin_write(op); });
}

void DataIo::begin_write(const std::shared_ptr<WriteOp>& op) {
  if (instance_.fenced()) return finish_write(op, failure(ErrorCode::fenced, "this client was fenced"));
  if (ready_to_write(*op)) return issue_write(op);
  pool_.post([this, op] {
    if (has_dirty_tail(*op)) return clean_up_and_begin_again(op);
    auto prepared = prepare_write(*op);
    if (!prepared) return finish_write(op, std::unexpected(std::move(prepared).error()));
    issue_write(op);
  });
}

bool DataIo::has_dirty_tail(const WriteOp& op) {
  const std::lock_guard lock(op.node->mutex);
  return op.node->tail_is_dirty;
}

Result<> DataIo::clean_tail_alone(FileNode& node) {
  const AloneInGate alone(node.gate);
  const std::lock_guard one_step(node.lease_mutex);
  return lease_.clean_tail(node);
}

/// A cut that failed is made good before anything else is written: a write behind it would bring back what was cut.
void DataIo::clean_up_and_begin_again(const std::shared_ptr<WriteOp>& op) {
  op->leave();
  auto cleaned = clean_tail_alone(*op->node);
  if (!cleaned) return op->done(std::unexpected(std::move(cleaned).error()));
  op->node->gate.enter_write({op->offset, op->end()}, [this, op] { begin_write(op); });
}

bool DataIo::ready_to_write(const WriteOp& op) const {
  const std::lock_guard lock(op.node->mutex);
  const auto& view = op.node->view;
  if (!op.node->lease_held || op.node->tail_is_dirty) return false;
  if (!op.request.writes_back_pages && !has_no_privileges(*op.node, op.request.caller)) return false;
  const auto extents = format::extents(instance_.super().object_size_bytes, op.offset, op.size_bytes());
  return std::all_of(extents.begin(), extents.end(),
                     [&view](const format::Extent& extent) { return view.map.may_exist(extent.index); });
}

/// Everything that blocks: the lease, the map bits, the setuid bits.
Result<> DataIo::prepare_write(const WriteOp& op) {
  {
    const std::lock_guard one_step(op.node->lease_mutex);
    LCCFS_CHECK(lease_.ensure(*op.node));
  }
  // Pages are written back on nobody's behalf: that takes nothing away.
  if (!op.request.writes_back_pages) LCCFS_CHECK(clear_privileges(*op.node, op.request.caller));
  if (op.size_bytes() == 0) return {};
  const std::lock_guard one_step(op.node->lease_mutex);
  const auto object_size = instance_.super().object_size_bytes;
  const auto first = op.offset / object_size;
  const auto last = (op.end() - 1) / object_size;
  std::uint64_t ahead = 0;
  bool mapped = true;
  {
    const std::lock_guard lock(op.node->mutex);
    for (auto i = first; i <= last; ++i) mapped = mapped && op.node->view.map.may_exist(ObjectIndex{i});
    // Whoever writes one object after the other will write the next ones too: as many as it has written so far.
    if (op.offset == op.node->last_write_end) ahead = std::min(last, most_objects_ahead);
  }
  if (mapped) return {};
  return lease_.map_objects(*op.node, ObjectIndex{first}, last - first + 1, ahead);
}

void DataIo::issue_write(const std::shared_ptr<WriteOp>& op) {
  const auto extents = format::extents(instance_.super().object_size_bytes, op->offset, op->size_bytes());
  op->pending = extents.size() + 1;
  for (const auto& extent : extents) {
    const SharedBytes part{op->request.bytes.owner, op->request.bytes.data + (extent.file_offset_bytes - op->offset),
                           extent.length_bytes};
    instance_.store().write_data(format::data_object(op->node->ino, extent.index), extent.object_offset_bytes, part,
                                 [this, op](Result<> written) {
                                   if (!written) {
                                     const std::lock_guard lock(op->error_mutex);
                                     op->error = std::move(written).error();
                                   }
                                   write_returned(op);
                                 });
  }
  write_returned(op);
}

void DataIo::write_returned(const std::shared_ptr<WriteOp>& op) {
  if (op->pending.fetch_sub(1) != 1) return;
  if (!op->error) {
    note_written(*op);
    if (op->alone || !must_store(*op)) return finish_write(op, op->size_bytes());
    return pool_.post([this, op] { finish_write(op, store_written(*op)); });
  }
  {
    const std::lock_guard lock(op->node->mutex);
    if (op->end() > op->node->view.size_bytes) op->node->tail_is_dirty = true;
    if (op->node->tail_is_dirty && !op->alone) return pool_.post([this, op] { clean_up_failed_write(op); });
  }
  finish_write(op, std::unexpected(*op->error));
}

/// The size rises as a write completes, in any order, before it is answered.
void DataIo::note_written(const WriteOp& op) {
  const auto now = instance_.clock().wall_time();
  const auto extents = format::extents(instance_.super().object_size_bytes, op.offset, op.size_bytes());
  const std::lock_guard lock(op.node->mutex);
  auto& node = *op.node;
  const bool grew = op.end() > node.view.size_bytes && op.size_bytes() != 0;
  if (grew) node.view.size_bytes = op.end();
  node.view.mtime = node.view.wtime = now;
  node.last_write_end = op.end();
  node.mark_dirty(grew, instance_.clock().elapsed());
  for (const auto& extent : extents) {
    if (node.view.map.believed_there(extent.index)) continue;
    node.view.map.set_believed_there(extent.index, true);
    node.dirty_map_blocks.insert(extent.index.value / format::MapBlock::objects);
  }
}

/// O_DSYNC and O_SYNC: the kernel sends no fsync behind a direct write. What of this write somebody else is just storing
/// is waited for.
bool DataIo::must_store(const WriteOp& op) {
  if (!op.syncs_data()) return false;
  const std::lock_guard lock(op.node->mutex);
  return op.node->is_storing || op.node->needs_store(op.syncs_times());
}

/// Before the write leaves the gate: the lease is still ours.
Result<std::size_t> DataIo::store_written(const WriteOp& op) {
  LCCFS_CHECK(lease_.store_dirty(*op.node, op.syncs_times()));
  return op.size_bytes();
}

/// A failed write past the end may have been applied by an earlier run of the step: what lies past the size is cut,
/// alone, before the failure is answered.
void DataIo::clean_up_failed_write(const std::shared_ptr<WriteOp>& op) {
  if (op->leave) std::exchange(op->leave, nullptr)();
  const auto cleaned = clean_tail_alone(*op->node);
  if (!cleaned) {
    const std::lock_guard lock(op->error_mutex);
    op->error = cleaned.error();
  }
  finish_write(op, std::unexpected(*op->error));
}

/// Out of the gate first: pages that are dropped are waited for while they are being read, and that read may wait in the
/// gate behind one who waits for this write.
void DataIo::finish_write(const std::shared_ptr<WriteOp>& op, Result<std::size_t> result) {
  if (op->leave) op->leave();
  if (op->alone) return op->done(std::move(result));
  answer_behind_pages(op, std::move(result));
}

/// Who read into a page before the bytes were there has read old ones: such pages go before the write is answered.
void DataIo::answer_behind_pages(const std::shared_ptr<WriteOp>& op, Result<std::size_t> result) {
  if (op->pages == Pages::written || !kernel_.may_hold_pages(op->node->ino)) return op->done(std::move(result));
  page_threads_.post([this, op, result = std::move(result)]() mutable {
    kernel_.drop_written_pages(op->node->ino, op->offset, op->size_bytes());
    op->done(std::move(result));
  });
}

void DataIo::append(std::shared_ptr<FileNode> node, WriteRequest request, Pages pages, FileSystem::WriteDone done) {
  auto op = std::make_shared<WriteOp>();
  op->node = std::move(node);
  op->request = std::move(request);
  op->pages = pages;
  op->alone = true;
  pool_.post([this, op, done = std::move(done)]() mutable {
    auto result = append_alone(op);
    if (result && op->offset != op->request.offset_bytes) append_moved(*op);
    op->done = std::move(done);
    answer_behind_pages(op, std::move(result));
  });
}

/// It did not land where the kernel believed that the file ends, and where its pages have it now.
void DataIo::append_moved(const WriteOp& op) {
  const Ino ino = op.node->ino;
  kernel_.drop_attributes(ino);
  if (op.pages == Pages::passed_by) return;
  kernel_.pages_are_wrong(ino);
  page_threads_.post([this, ino] { kernel_.drop_pages(ino); });  // behind the answer: it holds them until then
}

Result<std::size_t> DataIo::append_alone(const std::shared_ptr<WriteOp>& op) {
  const AloneInGate alone(op->node->gate);
  {
    const std::lock_guard one_step(op->node->lease_mutex);
    LCCFS_CHECK(lease_.ensure(*op->node));
    LCCFS_CHECK(lease_.clean_tail(*op->node));
    const std::lock_guard lock(op->node->mutex);
    op->offset = op->node->view.size_bytes;
  }
  if (op->size_bytes() > format::file_size_limit_bytes - op->offset) {
    return failure(ErrorCode::file_too_large, "a file has at most 2^63 - 1 bytes");
  }
  LCCFS_CHECK(prepare_write(*op));
  std::promise<Result<std::size_t>> promise;
  auto answer = promise.get_future();
  op->done = [promise = std::move(promise)](Result<std::size_t> written) mutable {
    promise.set_value(std::move(written));
  };
  issue_write(op);
  auto result = answer.get();
  if (!result) {
    const std::lock_guard one_step(op->node->lease_mutex);
    LCCFS_CHECK(lease_.clean_tail(*op->node));
  } else if (must_store(*op)) {
    return store_written(*op);
  }
  return result;
}

}  // namespace lccfs
