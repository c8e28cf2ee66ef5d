// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Writing. The hot path (lease held, objects mapped, no setuid bit to clear) is the data write and nothing else.
//
//  write  | object   | step                                         | stop here leaves
//  0      | Inode.X  | the lease (lease.cpp), once                  | my lease, until I am expired
//  1      | Inode.X  | [store size, times, map] "may exist" bits of | bits that promise nothing
//         |          | the objects, if not set                      |
//  -      | memory   | if buffered: the bytes, instead of 2 and 3;  | the old bytes: no fsync covered the new ones
//         |          | written out later (write_buffer.cpp)         |
//  2      | Data.X.* | write (all extents together)                 | below the size: old, new or torn bytes, as on a
//         |          |                                              | disk; past it: cut at the take-over
//  -      | memory   | size and times, stored at fsync, flush,      | growth that no fsync covered is lost
//         |          | release                                      |
//  3      | Inode.X  | [store size, times, map] O_DSYNC: size and   | as 2: the write has no answer yet
//         |          | map, if dirty; O_SYNC: times too             |
#include <fcntl.h>

#include <algorithm>

#include "base/completions.h"
#include "format/layout.h"
#include "format/object_names.h"
#include "fs/checks.h"
#include "fs/data_io.h"

namespace lccfs {

namespace {

constexpr std::uint64_t most_objects_ahead = 16;

struct WriteOp : std::enable_shared_from_this<WriteOp> {
  WriteOp(DataIo& data_io, DataIo::Node file, WriteRequest wanted, DataIo::Pages its_pages)
      : io(data_io), node(std::move(file)), request(std::move(wanted)), pages(its_pages) {}

  DataIo& io;
  const DataIo::Node node;
  const WriteRequest request;
  const DataIo::Pages pages;
  std::uint64_t offset = request.offset_bytes;          // of an append: known once it is alone
  std::uint64_t size_bytes = request.bytes.size_bytes;  // less of pages that are written back and reach past the end
  FileSystem::WriteDone done;
  bool buffered = false;  // answered before the store has it
  bool has_room = false;  // for its bytes in the buffer
  bool in_gate = false;   // as a write is: an append's thread is alone there, waits, cleans up and answers
  bool alone = false;
  bool maps_objects = false;  // some could not exist before
  PartsInFlight parts;

  std::uint64_t end() const { return offset + size_bytes; }
  ByteRange in_the_gate() const { return {offset, offset + request.bytes.size_bytes}; }
  bool syncs_data() const { return (request.flags & O_DSYNC) != 0; }
  bool syncs_times() const { return (request.flags & O_SYNC) == O_SYNC; }
  auto extents() const { return format::extents(io.instance.super().object_size_bytes, offset, size_bytes); }

  void enter() {
    node->gate.enter_write(in_the_gate(), [op = shared_from_this()] {
      op->in_gate = true;
      op->begin();
    });
  }

  void leave() {
    if (std::exchange(in_gate, false)) node->gate.leave_write(in_the_gate());
  }

  void begin() {
    if (io.instance.fenced()) return finish(failure(ErrorCode::fenced, "this client was fenced"));
    buffered = may_be_buffered();
    if (is_ready()) return issue();
    io.pool.post([op = shared_from_this()] { op->prepare_and_issue(); });
  }

  void prepare_and_issue() {
    if (has_dirty_tail()) return clean_up_and_begin_again();
    auto prepared = prepare();
    if (!prepared) return finish(std::unexpected(std::move(prepared).error()));
    issue();
  }

  bool has_dirty_tail() const {
    const Lock lock(node->mutex);
    return node->tail_is_dirty;
  }

  Result<> clean_tail_alone() {
    while (has_dirty_tail()) {
      const WriteAloneInGate turn(node->gate, in_the_gate());
      if (!turn.is_alone()) continue;
      const Lock one_step(node->step_mutex);
      return node->clean_tail();
    }
    return {};
  }

  /// A cut that failed is made good before anything else is written: a write after it would bring back what was cut.
  void clean_up_and_begin_again() {
    auto cleaned = clean_tail_alone();
    if (!cleaned) return finish(std::unexpected(std::move(cleaned).error()));
    begin();
  }

  /// Direct and synchronous writes wait for the store; all do once another client has asked for the file, and after one
  /// that could not be stored.
  bool may_be_buffered() const {
    if (!io.room.is_open() || size_bytes == 0 || syncs_data() || (request.flags & O_DIRECT) != 0) return false;
    if (node->buffer->is_failing()) return false;
    const Lock lock(node->mutex);
    return !node->is_used_elsewhere();
  }

  bool is_ready() {
    {
      const Lock lock(node->mutex);
      if (!node->lease_held || node->may_be_released || node->tail_is_dirty) return false;
      if (request.writes_back_pages ? end() > node->view.size_bytes : !io.has_no_privileges(*node, request.caller)) {
        return false;
      }
      if (!node->is_mapped(offset, size_bytes)) return false;
    }
    if (!buffered) return !io.room.is_used() || !node->buffer->has_any_of({offset, end()});
    return has_room = io.room.take_now(size_bytes);
  }

  /// Everything that blocks: the lease, the map bits, the setuid bits.
  Result<> prepare() {
    {
      const Lock one_step(node->step_mutex);
      LCCFS_CHECK(node->ensure());
    }
    // No user writes back pages: that clears no setuid bit.
    if (!request.writes_back_pages) LCCFS_CHECK(io.clear_privileges(*node, request.caller));
    if (request.writes_back_pages) leave_out_what_is_past_the_end();
    if (size_bytes == 0) {
      buffered = false;
      return {};
    }
    LCCFS_CHECK(map_extents());
    buffered = has_room || took_room();
    return buffered ? Result<>{} : pass_by_buffer();
  }

  /// While it waited another client may have asked for the file, or a write have failed.
  bool took_room() {
    if (!may_be_buffered() || !io.room.take(size_bytes)) return false;
    if (may_be_buffered()) return true;
    io.room.give_back(size_bytes);
    return false;
  }

  /// A mapping does not grow its file. The kernel writes back up to the size that it knows, which an open with O_TRUNC,
  /// or another client's truncate, may have made smaller already.
  void leave_out_what_is_past_the_end() {
    const Lock lock(node->mutex);
    size_bytes = std::min(end(), std::max(offset, node->view.size_bytes)) - offset;
  }

  /// What is buffered of the range comes before this write.
  Result<> pass_by_buffer() {
    if (!node->buffer->has_any_of({offset, end()})) return {};
    return node->buffer->write_out({offset, end()});
  }

  /// No file has more: a bit past them would be a corrupt map.
  std::uint64_t objects_after(ObjectIndex index) const {
    const auto all = format::object_count(io.instance.super().object_size_bytes, format::file_size_limit_bytes);
    return all - 1 - index.value;
  }

  Result<> map_extents() {
    const auto written = extents();
    const auto first = written.front().index, last = written.back().index;
    const Lock one_step(node->step_mutex);
    std::uint64_t ahead = 0;
    {
      const Lock lock(node->mutex);
      if (node->is_mapped(offset, size_bytes)) return {};
      // A writer that writes one object after the other will write the next ones too: as many as it has written so far.
      if (offset == node->last_write_end) ahead = std::min({last.value, most_objects_ahead, objects_after(last)});
    }
    maps_objects = true;
    return node->map_objects(first, last.value - first.value + 1 + ahead, written);
  }

  void issue() {
    if (!buffered) return send();
    node->buffer->put(offset, {request.bytes.data, size_bytes});
    note_written();
    if (may_be_buffered()) return finish(request.bytes.size_bytes);
    // Meanwhile another client has opened the file, or a write has failed.
    io.pool.post([op = shared_from_this()] {
      auto written = op->pass_by_buffer();
      op->finish(written ? Result<std::size_t>(op->request.bytes.size_bytes)
                         : std::unexpected(std::move(written).error()));
    });
  }

  void send() {
    node->passes_buffer();
    const auto all = extents();
    parts.begin(all.size() + 1);
    for (const auto& extent : all) {
      const SharedBytes part{request.bytes.owner, request.bytes.data + (extent.file_offset_bytes - offset),
                             extent.length_bytes};
      io.instance.store().write_data(format::data_object(node->ino, extent.index), extent.object_offset_bytes, part,
                                     [op = shared_from_this()](Result<> written) {
                                       if (!written) op->parts.fail(std::move(written).error());
                                       if (op->parts.end_one()) op->returned();
                                     });
    }
    if (parts.end_one()) returned();
  }

  void returned() {
    auto error = parts.error();
    if (!error) {
      if (size_bytes == 0) return finish(request.bytes.size_bytes);  // all of it lay past the end
      if (node->buffer->is_failing()) node->buffer->succeeded();
      if (io.room.is_refused() && has_found_room()) io.room.write_found_room();
      note_written();
      if (alone || !must_store()) return finish(request.bytes.size_bytes);
      return io.pool.post([op = shared_from_this()] { op->finish(op->store_written()); });
    }
    {
      const Lock lock(node->mutex);
      if (end() > node->view.size_bytes) node->tail_is_dirty = true;
    }
    if (alone || !has_dirty_tail()) return finish(std::unexpected(std::move(*error)));
    io.pool.post([op = shared_from_this()] { op->clean_up_and_fail(); });
  }

  /// Before it is noted: whether it went to where nothing was. What overwrites needs no room: a full pool takes it.
  bool has_found_room() const {
    if (maps_objects) return true;
    const Lock lock(node->mutex);
    if (end() > node->view.size_bytes) return true;
    for (const auto& extent : extents()) {
      if (node->view.map.units_there(extent.index) == 0) return true;
    }
    return false;
  }

  /// The size rises as a write completes, in any order, before it is answered.
  void note_written() {
    const Lock lock(node->mutex);
    node->note_bytes_up_to(end());
    node->last_write_end = end();
    for (const auto& extent : extents()) node->note_there(extent);
  }

  /// O_DSYNC and O_SYNC: the kernel sends no fsync after a direct write. What of this write somebody else is just
  /// storing is waited for.
  bool must_store() const {
    if (!syncs_data()) return false;
    const Lock lock(node->mutex);
    return node->is_dirty(syncs_times());
  }

  /// Before the write leaves the gate: the lease is still ours.
  Result<std::size_t> store_written() {
    LCCFS_CHECK(node->store_dirty(syncs_times()));
    return request.bytes.size_bytes;
  }

  /// A failed write past the end may have been applied by an earlier run of the step: what lies past the size is cut,
  /// alone, before the failure is answered.
  void clean_up_and_fail() {
    const auto cleaned = clean_tail_alone();
    finish(std::unexpected(cleaned ? *parts.error() : cleaned.error()));
  }

  /// Leaves the gate first: dropping a page waits for a read of it, and that read may wait in the gate for a request
  /// that waits for this write.
  void finish(Result<std::size_t> result) {
    leave();
    if (alone) return done(std::move(result));
    answer_after_pages(std::move(result));
  }

  /// A page that was read before the bytes were there is old: such pages are dropped before the write is answered.
  void answer_after_pages(Result<std::size_t> result) {
    if (!result && is_out_of_space(result.error())) io.room.write_refused(result.error());
    io.announcements.changed(*node);
    if (!result && (request.flags & O_DIRECT) != 0) {
      return io.pool.post([op = shared_from_this(), result = std::move(result)]() mutable {
        op->fail_once_size_is_told(std::move(result));
      });
    }
    drop_pages_and_answer(std::move(result));
  }

  void drop_pages_and_answer(Result<std::size_t> result) {
    if (pages == DataIo::Pages::written) return done(std::move(result));
    io.kernel.drop_written_pages(
        node->ino, offset, size_bytes,
        [op = shared_from_this(), result = std::move(result)]() mutable { op->done(std::move(result)); });
  }

  /// Where an asynchronous direct write fails that it takes for one past the end, the kernel cuts the file to the size
  /// that it knows, by a request like any other, and it may not know what other clients have appended: so it is told
  /// before the write is answered (docs/DATA.md section 9). Other parts of the write are to go.
  void fail_once_size_is_told(Result<std::size_t> failed) {
    const auto size = io.instance.fenced() ? 0 : size_by_others();
    const bool has_pages = io.kernel.may_hold_pages(node->ino);
    if (size == 0 || (has_pages && io.kernel.knows_size(node->ino, size))) {
      return drop_pages_and_answer(std::move(failed));
    }
    const auto last_byte = std::make_shared<char>();
    auto tell = [op = shared_from_this(), failed = std::move(failed), size, last_byte]() mutable {
      op->io.kernel.tell_size(op->node->ino, size, *last_byte,
                              [op, failed = std::move(failed)]() mutable { op->done(std::move(failed)); });
    };
    if (!has_pages) return tell();
    io.read(node, size - 1, {last_byte.get(), 1},
            [tell = std::move(tell)](const Result<std::size_t>&) mutable { tell(); });
  }

  /// 0: not known, or nothing.
  std::uint64_t size_by_others() {
    {
      const Lock lock(node->mutex);
      if (node->lease_held) return node->others_size_bytes;
    }
    const auto view = io.holders.read_current(node->ino, LeaseHolders::Ask::for_reading);
    return view ? view->size_bytes : 0;
  }

  // -- appends: alone in the gate, on a thread of the pool
  void append(FileSystem::WriteDone answer) {
    alone = true;
    auto result = append_alone();
    node->gate.leave_alone();
    if (result && offset != request.offset_bytes) append_moved();
    done = std::move(answer);
    answer_after_pages(std::move(result));
  }

  /// It did not land where the kernel believed that the file ends, and where its pages have it now.
  void append_moved() {
    {
      const Lock lock(node->mutex);
      node->others_size_bytes = std::max(node->others_size_bytes, end());
    }
    io.kernel.drop_attributes(node->ino);
    if (pages == DataIo::Pages::written) io.kernel.pages_are_wrong(node->ino);
  }

  Result<std::size_t> append_alone() {
    LCCFS_CHECK(io.instance.check_not_fenced());
    {
      const Lock one_step(node->step_mutex);
      LCCFS_CHECK(node->ensure());
      LCCFS_CHECK(node->clean_tail());
      const Lock lock(node->mutex);
      offset = node->view.size_bytes;
    }
    LCCFS_CHECK(check_bytes(offset, size_bytes));
    LCCFS_CHECK(prepare());
    auto [answer, answered] = promised<Result<std::size_t>>();
    done = std::move(answered);
    issue();
    auto result = answer.get();
    if (result && must_store()) result = store_written();
    if (!result) {
      const Lock one_step(node->step_mutex);
      // Bytes that stayed would be in the file, and so would those of who appends them again.
      LCCFS_CHECK(node->take_back_growth(offset));
    }
    return result;
  }
};

}  // namespace

void DataIo::write(Node node, WriteRequest request, Pages pages, FileSystem::WriteDone done) {
  if (auto possible = check_bytes(request.offset_bytes, request.bytes.size_bytes); !possible) {
    return done(std::unexpected(std::move(possible).error()));
  }
  const auto op = std::make_shared<WriteOp>(*this, std::move(node), std::move(request), pages);
  op->done = std::move(done);
  op->enter();
}

void DataIo::append(Node node, WriteRequest request, Pages pages, FileSystem::WriteDone done) {
  const auto op = std::make_shared<WriteOp>(*this, std::move(node), std::move(request), pages);
  // In line at once: the parts of one write(2) come one after the other.
  op->node->gate.enter_alone([op, done = std::move(done)]() mutable {
    op->io.pool.post([op, done = std::move(done)]() mutable { op->append(std::move(done)); });
  });
}

}  // namespace lccfs
