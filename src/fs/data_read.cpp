// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Reading. With the lease, memory knows size and map: one store read for each mapped object touched, none for holes.
// Without it, the inode as it was last read is a guess: bytes found where it says so are the file's; wherever it says
// "end of file" or "hole", and wherever bytes are missing, the inode is read again, and the read starts over if it has
// changed meanwhile (else a read beside a truncate returns zeros that never were).
#include <algorithm>
#include <cstring>

#include "format/layout.h"
#include "format/object_names.h"
#include "fs/data_io.h"

namespace lccfs {

namespace {
constexpr unsigned most_attempts = 8;
}

struct DataIo::ReadOp {
  std::shared_ptr<FileNode> node;
  std::uint64_t offset = 0;
  std::span<char> target;
  FileSystem::ReadDone done;

  // the attempt under way
  bool leased = false;  // memory is the truth
  bool fresh = false;   // the view was read after this request came in
  bool asked = false;   // and whoever holds the lease had stored the size before
  unsigned attempts = 0;
  std::uint64_t version = 0;
  std::uint64_t length = 0;  // what of the target lies below the size
  std::vector<format::Extent> mapped;
  std::atomic<std::size_t> pending{0};
  std::atomic<bool> bytes_missing{false};
  std::mutex error_mutex;
  std::optional<Error> error;
};

void DataIo::read(std::shared_ptr<FileNode> node, std::uint64_t offset, std::span<char> target,
                  FileSystem::ReadDone done) {
  auto op = std::make_shared<ReadOp>();
  op->node = std::move(node);
  op->offset = offset;
  op->target = target;
  op->done = std::move(done);
  op->node->gate.enter_read([this, op] { begin_read(op); });
}

void DataIo::begin_read(const std::shared_ptr<ReadOp>& op) {
  if (instance_.fenced()) return finish_read(op, failure(ErrorCode::fenced, "this client was fenced"));
  attempt_read(op);
}

/// Lays out the read by what is known of the file, and sends it off, or has the inode read anew first.
void DataIo::attempt_read(const std::shared_ptr<ReadOp>& op) {
  const auto object_size = instance_.super().object_size_bytes;
  bool meets_end = false;
  bool meets_hole = false;
  bool map_is_whole = false;
  {
    const std::lock_guard lock(op->node->mutex);
    const auto& view = op->node->view;
    op->leased = op->node->lease_held;
    op->version = view.version;
    const auto end = std::min<std::uint64_t>(op->offset + op->target.size(), view.size_bytes);
    op->length = end > op->offset ? end - op->offset : 0;
    meets_end = op->length < op->target.size();
    op->mapped.clear();
    for (const auto& extent : format::extents(object_size, op->offset, op->length)) {
      if (view.map.may_exist(extent.index)) {
        op->mapped.push_back(extent);
      } else {
        meets_hole = true;
      }
    }
    map_is_whole = view.map_is_whole;
  }
  const bool hole_is_a_guess = meets_hole && (!op->fresh || !map_is_whole);
  if (!op->leased && ((meets_end && !op->asked) || hole_is_a_guess)) {
    pool_.post([this, op] { refresh_and_retry(op); });
    return;
  }
  issue_read(op);
}

void DataIo::issue_read(const std::shared_ptr<ReadOp>& op) {
  // Holes between mapped objects are zeros without asking; what the store fills in is fixed up when it has answered.
  std::uint64_t position = op->offset;
  auto zero_until = [&](std::uint64_t file_offset) {
    std::memset(op->target.data() + (position - op->offset), 0, file_offset - position);
  };
  for (const auto& extent : op->mapped) {
    zero_until(extent.file_offset_bytes);
    position = extent.file_offset_bytes + extent.length_bytes;
  }
  zero_until(op->offset + op->length);
  op->bytes_missing = false;
  op->pending = op->mapped.size() + 1;
  const std::size_t count = op->mapped.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto extent = op->mapped[i];
    const auto part = op->target.subspan(extent.file_offset_bytes - op->offset, extent.length_bytes);
    instance_.store().read_data(format::data_object(op->node->ino, extent.index), extent.object_offset_bytes, part,
                                [this, op, part](Result<std::size_t> got) {
                                  if (!got) {
                                    const std::lock_guard lock(op->error_mutex);
                                    op->error = std::move(got).error();
                                  } else if (*got < part.size()) {
                                    std::memset(part.data() + *got, 0, part.size() - *got);
                                    op->bytes_missing = true;
                                  }
                                  read_returned(op);
                                });
  }
  read_returned(op);
}

void DataIo::read_returned(const std::shared_ptr<ReadOp>& op) {
  if (op->pending.fetch_sub(1) != 1) return;
  if (op->error) return finish_read(op, std::unexpected(*op->error));
  if (!op->bytes_missing || op->leased) return finish_read(op, op->length);
  pool_.post([this, op] { refresh_and_retry(op); });
}

/// On the pool: reads the inode again; unchanged under bytes that were missing, they are zeros; else starts over.
void DataIo::refresh_and_retry(const std::shared_ptr<ReadOp>& op) {
  const bool meets_end = op->length < op->target.size();
  auto view = lease_.read_current(op->node->ino, meets_end ? WriteLease::Ask::for_reading : WriteLease::Ask::nobody);
  if (!view) {
    Error error = std::move(view).error();
    if (error.code == ErrorCode::not_found) error.code = ErrorCode::stale;
    return finish_read(op, std::unexpected(std::move(error)));
  }
  // Nobody asks a client without a record what it has open: the bytes may have gone with the file.
  if (op->bytes_missing && !view->live() && !instance_.recorded())
    return finish_read(op, failure(ErrorCode::stale, format::inode_object(op->node->ino) + " was removed"));
  // Beside a writer that stores its times all the time the version never stands still: in the end it is enough that the
  // size still covers what was read.
  const bool unchanged =
      view->version == op->version || (++op->attempts > most_attempts && view->size_bytes >= op->offset + op->length);
  op->node->learn(std::move(*view));
  if (op->bytes_missing && unchanged) return finish_read(op, op->length);
  op->fresh = true;
  op->asked = op->asked || meets_end;
  attempt_read(op);
}

void DataIo::finish_read(const std::shared_ptr<ReadOp>& op, Result<std::size_t> result) {
  op->node->gate.leave_read();
  op->done(std::move(result));
}

}  // namespace lccfs
