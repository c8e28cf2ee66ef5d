// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Reading. With the lease, memory knows size and map: one store read for each mapped object touched, none for holes.
// What is buffered replaces what the store has. It is copied before the store is asked, so that bytes that reach the
// store meanwhile are not missed. Of a new file whose bytes are all buffered nothing is asked: linkers read what they have
// just written.
// Without the lease, the inode as it was last read is a guess. Bytes found where the inode says so are the file's.
// Where it says "end of file" or "hole", and where bytes are missing, the inode is read again, and if it has changed,
// the read starts over. (Else a read beside a truncate would return zeros that were never in the file.) For the end of
// the file it is read beside the bytes; for holes before them, and where bytes are missing after them.
#include <algorithm>
#include <cstring>

#include "format/layout.h"
#include "format/object_names.h"
#include "fs/data_io.h"

namespace lccfs {

namespace {

constexpr unsigned most_attempts = 8;

struct ReadOp : std::enable_shared_from_this<ReadOp> {
  ReadOp(DataIo& data_io, DataIo::Node file, std::uint64_t from, std::span<char> into, FileSystem::ReadDone when_done)
      : io(data_io), node(std::move(file)), offset(from), target(into), done(std::move(when_done)) {}

  DataIo& io;
  const DataIo::Node node;
  const std::uint64_t offset;
  const std::span<char> target;
  FileSystem::ReadDone done;

  // the attempt under way
  bool leased = false;                            // memory is the truth
  bool fresh = false;                             // the view was read after this request came in
  bool asked = false;                             // and a holder of the lease had stored the size before
  bool checks_end = false, end_is_right = false;  // the inode is read beside the bytes
  unsigned attempts = 0;
  std::uint64_t version = 0;
  std::uint64_t length = 0;  // what of the target lies below the size
  std::vector<format::Extent> mapped;
  std::vector<WriteBuffer::Piece> unwritten;  // what is buffered of it
  std::atomic<bool> bytes_missing{false};
  PartsInFlight parts;

  bool meets_end() const { return length < target.size(); }

  void begin() {
    if (io.instance.fenced()) return finish(failure(ErrorCode::fenced, "this client was fenced"));
    if (!node->is_in_doubt()) return attempt();
    io.pool.post([op = shared_from_this()] { op->settle_and_attempt(); });
  }

  /// On the pool. While this read is in the gate, no other release begins.
  void settle_and_attempt() {
    if (auto settled = node->settle_release(); !settled) return finish(std::unexpected(std::move(settled).error()));
    attempt();
  }

  /// Sends off the read as what is known of the file lays it out, or has the inode read anew first.
  void attempt() {
    bytes_missing = false;  // those of the layout before
    const bool hole_is_a_guess = lay_out();
    const bool end_is_a_guess = !leased && meets_end() && !asked;
    if ((!leased && hole_is_a_guess) || (end_is_a_guess && mapped.empty())) {
      return io.pool.post([op = shared_from_this()] { op->refresh_and_retry(); });
    }
    checks_end = end_is_a_guess;
    issue();
  }

  /// Whether there seem to be holes in it that may be none.
  bool lay_out() {
    const Lock lock(node->mutex);
    leased = node->lease_held;
    version = node->view.version;
    const std::uint64_t size_bytes = node->view.size_bytes;
    const auto end = std::min(offset + target.size(), size_bytes);
    length = end > offset ? end - offset : 0;
    unwritten.clear();
    if (leased && length != 0) unwritten = node->buffer->pieces({offset, end});
    mapped.clear();
    if (leased && node->is_all_buffered()) return false;  // asked after they were copied
    bool meets_hole = false;
    for (const auto& extent : format::extents(io.instance.super().object_size_bytes, offset, length)) {
      const bool is_mapped = node->view.map.may_exist(extent.index);
      if (is_mapped) mapped.push_back(extent);
      meets_hole = meets_hole || !is_mapped;
    }
    return meets_hole && (!fresh || !node->view.map_is_whole);
  }

  /// Whether nothing of it is to be read from the store.
  bool is_all_unwritten() const {
    auto position = offset;
    for (const auto& piece : unwritten) {
      if (piece.offset_bytes > position) return false;
      position = std::max(position, piece.offset_bytes + piece.bytes.size());
    }
    return position >= offset + length;
  }

  void issue() {
    if (is_all_unwritten()) mapped.clear();
    // Holes between mapped objects are zeros without asking; what the store fills in is fixed up when it has answered.
    std::uint64_t position = offset;
    const auto zero_until = [&](std::uint64_t file_offset) {
      std::memset(target.data() + (position - offset), 0, file_offset - position);
    };
    for (const auto& extent : mapped) {
      zero_until(extent.file_offset_bytes);
      position = extent.file_offset_bytes + extent.length_bytes;
    }
    zero_until(offset + length);
    parts.begin(mapped.size() + 1 + (checks_end ? 1 : 0));
    if (checks_end) io.pool.post([op = shared_from_this()] { op->check_end(); });
    for (const auto& extent : mapped) {
      const auto part = target.subspan(extent.file_offset_bytes - offset, extent.length_bytes);
      io.instance.store().read_data(
          format::data_object(node->ino, extent.index), extent.object_offset_bytes, part,
          [op = shared_from_this(), part](Result<std::size_t> got) { op->part_returned(part, std::move(got)); });
    }
    if (parts.end_one()) returned();
  }

  void part_returned(std::span<char> part, Result<std::size_t> got) {
    if (!got) {
      parts.fail(std::move(got).error());
    } else if (*got < part.size()) {
      std::memset(part.data() + *got, 0, part.size() - *got);
      bytes_missing = true;
    }
    if (parts.end_one()) returned();
  }

  /// On the pool.
  void check_end() {
    auto view = io.holders.read_current(node->ino, LeaseHolders::Ask::for_reading);
    if (view) {
      const bool has_changed = view->version != version;
      const bool is_held = view->lease.has_value();  // what its holder stores when it is asked is not among the bytes
      end_is_right = !has_changed && !is_held;
      node->learn(std::move(*view));
    } else {
      parts.fail(gone_is_stale(std::move(view).error()));
    }
    if (parts.end_one()) returned();
  }

  void returned() {
    if (auto error = parts.error()) return finish(std::unexpected(std::move(*error)));
    if (std::exchange(checks_end, false)) {
      fresh = asked = true;
      if (!end_is_right) return attempt();
    }
    if (!bytes_missing || leased) return finish(length);
    io.pool.post([op = shared_from_this()] { op->refresh_and_retry(); });
  }

  /// On the pool: reads the inode again. If it is unchanged, the missing bytes are zeros; if not, the read starts over.
  void refresh_and_retry() {
    using Ask = LeaseHolders::Ask;
    auto view = io.holders.read_current(node->ino, meets_end() ? Ask::for_reading : Ask::nobody);
    if (!view) return finish(std::unexpected(gone_is_stale(std::move(view).error())));
    // Nobody asks a client without a record what it has open: the bytes may have gone with the file.
    if (bytes_missing && !view->live() && !io.instance.recorded()) {
      return finish(failure(ErrorCode::stale, format::inode_object(node->ino) + " was removed"));
    }
    // Beside a writer that stores its times all the time the version never stands still: in the end it is enough that
    // the size still covers what was read.
    const bool unchanged =
        view->version == version || (++attempts > most_attempts && view->size_bytes >= offset + length);
    node->learn(std::move(*view));
    if (bytes_missing && unchanged) return finish(length);
    fresh = true;
    asked = asked || meets_end();
    attempt();
  }

  void finish(Result<std::size_t> result) {
    if (result) {
      for (const auto& piece : unwritten) std::ranges::copy(piece.bytes, target.data() + (piece.offset_bytes - offset));
    }
    node->gate.leave_read();
    done(std::move(result));
  }
};

}  // namespace

void DataIo::read(Node node, std::uint64_t offset, std::span<char> target, FileSystem::ReadDone done) {
  auto& gate = node->gate;
  const auto op = std::make_shared<ReadOp>(*this, std::move(node), offset, target, std::move(done));
  gate.enter_read([op] { op->begin(); });
}

}  // namespace lccfs
