// SPDX-License-Identifier: LGPL-2.1-or-later
//
// copy_file_range. Objects that line up are copied by the store, the rest is read and written by us. In parts: for each
// the source's gate is entered as a read and left before the target's is entered alone, so that copies in opposite
// directions do not wait for each other. Other changes to the source meanwhile may be in the copy or not; what is cut
// off the source may be zeros in the copy.
//
//  copy | object   | step                                                       | stop here leaves
//  1    | Data.S.* | write out what is buffered of these bytes                  | the same as a write
//       |          | (write_buffer.cpp); what is buffered still goes through 3  |
//  2    | Inode.S  | read size and map, unless the lease is ours; another holds | nothing
//       |          | it: it stores its size first                               |
//  3    | Data.S.* | where objects do not line up: which bytes are data; read   | nothing
//  4    | Inode.T  | what is buffered, the lease (lease.cpp), privileges        | my lease, no setuid bit
//       |          | (data_privileges.cpp)                                      |
//  5    | Data.T.* | where the source has holes: remove whole objects that may  | below the size: old, new or torn
//       |          | exist, zero parts                                          | bytes, as on a disk
//  6    | Inode.T  | [store size, times, map] "may exist" bits, if not set      | bits that promise nothing
//  7    | Data.T.* | copy whole objects (the source has lost it: remove; it has | as 5; past the size: cut at the
//       |          | changed meanwhile: read, and write), write the others      | take-over
//  8    | Inode.T  | [store size, times, map] if 5 left out an object: a holder | the same
//       |          | that was evicted learns of it                              |
//  -    | memory   | size and times, stored at fsync, flush, release            | growth that no fsync covered is lost
//
// At most 64 KiB of objects that may exist are read and written as by two programs: buffered, where a write is. (Holes
// within them become zeros.)
#include <algorithm>
#include <set>

#include "base/completions.h"
#include "format/layout.h"
#include "format/object_names.h"
#include "fs/checks.h"
#include "fs/data_map.h"
#include "fs/files.h"

namespace lccfs {

namespace {

// What the kernel waits for in one request; a part of it, alone in the gate; and of that, what is in our memory.
constexpr std::uint64_t most_bytes_in_a_call = 1ULL << 30;
constexpr std::uint64_t most_objects_in_a_part = 64;
constexpr std::uint64_t most_bytes_in_memory = 32ULL << 20;
constexpr std::uint64_t piece_bytes = 4ULL << 20;
constexpr std::size_t most_in_flight = 16;
constexpr std::uint64_t small_bytes = 64ULL << 10;

/// Data of the source that goes through our memory.
struct Piece {
  std::uint64_t from = 0;
  std::shared_ptr<std::vector<char>> bytes;
};

/// What is to be done for some bytes of the source, in the order of the file.
struct Part {
  std::uint64_t from = 0, size_bytes = 0;
  std::vector<ObjectIndex> objects;             ///< of the source: the store copies them
  std::vector<std::uint64_t> units_there = {};  ///< of each
  std::vector<Piece> pieces = {};
};

/// What has become of the copy of an object.
enum class Copy { done, source_missing, source_changed };

class RangeCopy {
 public:
  RangeCopy(DataIo& io, const Caller& caller, DataIo::Node source, std::uint64_t from, DataIo::Node target,
            std::uint64_t to, std::uint64_t size_bytes)
      : io_(io),
        caller_(caller),
        source_(std::move(source)),
        target_(std::move(target)),
        from_(from),
        to_(to),
        size_bytes_(std::min(size_bytes, most_bytes_in_a_call)) {}

  Result<std::uint64_t> run() {
    std::uint64_t copied = 0;
    while (copied < size_bytes_) {
      auto part = copy_part(from_ + copied);
      if (!part && copied == 0) return part;
      if (!part || *part == 0) break;  // what went wrong comes again with the next call
      copied += *part;
    }
    return copied;
  }

 private:
  /// How many bytes; 0: the source ends there.
  Result<std::uint64_t> copy_part(std::uint64_t from) {
    LCCFS_TRY(auto part, look_at_source(from));
    if (part.size_bytes == 0) return 0;
    LCCFS_CHECK(read(part));
    const ByteRange range = in_target({part.from, part.from + part.size_bytes});
    LCCFS_CHECK(io_.change_alone(*target_, caller_, range, [&] { return put(part, range); }));
    return part.size_bytes;
  }

  // -- the source
  Result<Part> look_at_source(std::uint64_t from) {
    const ReadInGate reading(source_->gate);
    static_cast<void>(source_->buffer->write_out({from, from_ + size_bytes_}));
    LCCFS_TRY(const auto map, DataMap::of(io_, *source_));
    if (from >= map.size_bytes()) return Part{};
    size_bytes_ = std::min(size_bytes_, map.size_bytes() - from_);
    const ByteRange all{from_, from_ + size_bytes_};
    if (source_ == target_ && all.overlaps(in_target(all))) {
      return failure(ErrorCode::invalid, format::inode_object(source_->ino) + ": a copy onto itself");
    }
    return lines_up() ? of_objects(map, {from, all.end}) : of_bytes(map, {from, all.end});
  }

  bool lines_up() const { return from_ % object_size_ == to_ % object_size_; }

  /// Whole objects, and what there is before and after them. The store lacks what is buffered (a write may have come
  /// since it was written out, or cannot be stored): an object that has any is read, and written, by itself.
  Result<Part> of_objects(const DataMap& map, ByteRange range) {
    const auto buffered = map.next_buffered(range.begin);
    const auto its_object = buffered / object_size_ * object_size_;
    if (its_object <= range.begin) return of_bytes(map, {range.begin, std::min(range.end, its_object + object_size_)});
    range.end = std::min(range.end, its_object);
    range.end = std::min(range.end, (range.begin / object_size_ + most_objects_in_a_part) * object_size_);
    const auto first = (range.begin + object_size_ - 1) / object_size_, last = range.end / object_size_;
    if (first >= last) return of_bytes(map, range);
    Part part{range.begin, range.end - range.begin, {}};
    for (auto i = first; i < last; ++i) {
      if (!map.may_exist(ObjectIndex{i})) continue;
      part.objects.push_back(ObjectIndex{i});
      // A client that is gone may have left it there without a word.
      const auto units = map.units_there(ObjectIndex{i});
      part.units_there.push_back(units != 0 ? units : format::all_units);
    }
    LCCFS_CHECK(add_pieces(map, {range.begin, first * object_size_}, part));
    LCCFS_CHECK(add_pieces(map, {last * object_size_, range.end}, part));
    return part;
  }

  Result<Part> of_bytes(const DataMap& map, ByteRange range) {
    range.end = std::min(range.end, range.begin + most_bytes_in_memory);
    Part part{range.begin, range.end - range.begin, {}};
    LCCFS_CHECK(add_pieces(map, range, part));
    return part;
  }

  static Result<> add_pieces(const DataMap& map, ByteRange range, Part& part) {
    LCCFS_TRY(const auto data, map.data_in(range));
    for (ByteRange rest : data) {
      while (rest.begin < rest.end) {
        const auto size_bytes = std::min(piece_bytes, rest.end - rest.begin);
        part.pieces.push_back({rest.begin, std::make_shared<std::vector<char>>(size_bytes)});
        rest.begin += size_bytes;
      }
    }
    return {};
  }

  /// As any read: what has been cut off meanwhile stays zeros.
  Result<> read(Part& part) {
    StepsInFlight reads(most_in_flight);
    for (const Piece& piece : part.pieces) {
      io_.read(source_, piece.from, *piece.bytes, [done = reads.next()](Result<std::size_t> got) mutable {
        done(got ? Result<>{} : std::unexpected(std::move(got).error()));
      });
    }
    return reads.wait();
  }

  // -- the target, alone in its gate
  ByteRange in_target(ByteRange range) const { return {range.begin - from_ + to_, range.end - from_ + to_}; }
  ObjectIndex in_target(ObjectIndex object) const {
    return {in_target({object.value * object_size_, 0}).begin / object_size_};
  }

  Result<> put(const Part& part, ByteRange range) {
    LCCFS_CHECK(target_->buffer->write_out(range));  // a copy gives no space: what it would replace stays, if it fails
    target_->passes_buffer();
    // All of it is through before anything is written: a step that the store runs twice must find nothing new.
    auto done = punch_holes(part);
    if (done) done = map_objects(part);
    const bool may_exist = done.has_value();
    if (done) done = put_bytes(part);
    if (!done) {
      note_begun(may_exist ? part : Part{});
      return clean_up_after(range, std::move(done).error());
    }
    note_copied(part, range);
    return is_complete_ ? Result<>{} : target_->confirm_lease();
  }

  Result<> put_bytes(const Part& part) {
    StepsInFlight steps(most_in_flight);
    copies_.assign(part.objects.size(), Copy::done);
    for (std::size_t i = 0; i < part.objects.size(); ++i) copy_object(part.objects[i], copies_[i], steps.next());
    for (const Piece& piece : part.pieces) write(piece, steps);
    LCCFS_CHECK(steps.wait());
    for (std::size_t i = 0; i < part.objects.size(); ++i) {
      if (copies_[i] == Copy::source_changed) LCCFS_CHECK(read_and_write_object(part.objects[i]));
    }
    return {};
  }

  Result<> punch_holes(const Part& part) {
    std::vector<ByteRange> data;
    data.reserve(part.objects.size() + part.pieces.size() + 1);
    for (const auto object : part.objects) {
      data.push_back({object.value * object_size_, (object.value + 1) * object_size_});
    }
    for (const Piece& piece : part.pieces) data.push_back({piece.from, piece.from + piece.bytes->size()});
    data.push_back({part.from + part.size_bytes, part.from + part.size_bytes});
    std::ranges::sort(data, {}, &ByteRange::begin);
    is_complete_ = true;
    auto at = part.from;
    for (const ByteRange& next : data) {
      if (next.begin > at) {
        LCCFS_TRY(const bool complete, target_->zero_range(in_target({at, next.begin})));
        is_complete_ = is_complete_ && complete;
      }
      at = next.end;
    }
    return {};
  }

  std::set<std::uint64_t> written_by(const Part& part) const {
    std::set<std::uint64_t> objects;
    for (const auto object : part.objects) objects.insert(in_target(object).value);
    for (const Piece& piece : part.pieces) {
      for (const auto& extent : extents_of(piece)) objects.insert(extent.index.value);
    }
    return objects;
  }

  std::vector<format::Extent> extents_of(const Piece& piece) const {
    return format::extents(object_size_, in_target({piece.from, 0}).begin, piece.bytes->size());
  }

  /// One step for each run of objects that follow each other.
  Result<> map_objects(const Part& part) {
    const auto objects = written_by(part);
    const Lock one_step(target_->step_mutex);
    for (auto first = objects.begin(); first != objects.end();) {
      auto next = first;
      std::uint64_t count = 0;
      while (next != objects.end() && *next == *first + count) ++next, ++count;
      if (!is_mapped(*first, count)) LCCFS_CHECK(target_->map_objects(ObjectIndex{*first}, count, {}));
      first = next;
    }
    return {};
  }

  bool is_mapped(std::uint64_t first, std::uint64_t count) const {
    const Lock lock(target_->mutex);
    return target_->is_mapped(first * object_size_, count * object_size_);
  }

  void copy_object(ObjectIndex object, Copy& copy, ObjectStore::DataDone done) {
    auto& store = io_.instance.store();
    const auto target = format::data_object(target_->ino, in_target(object));
    store.copy_data(format::data_object(source_->ino, object), target,
                    [&store, &copy, target, done = std::move(done)](Result<> copied) mutable {
                      if (copied) return done({});
                      switch (copied.error().code) {
                        case ErrorCode::guard_failed:
                          copy = Copy::source_changed;
                          return done({});
                        case ErrorCode::not_found:
                          copy = Copy::source_missing;
                          return store.remove_data(target, std::move(done));
                        default:
                          return done(std::move(copied));
                      }
                    });
  }

  /// One that is written all the time: each copy by the store would meet a change.
  Result<> read_and_write_object(ObjectIndex object) {
    auto& store = io_.instance.store();
    const auto target = format::data_object(target_->ino, in_target(object));
    const auto bytes = std::make_shared<std::vector<char>>(object_size_);
    auto [got, read] = promised<Result<std::size_t>>();
    store.read_data(format::data_object(source_->ino, object), 0, *bytes, std::move(read));
    LCCFS_TRY(const auto there, got.get());
    auto [cut, truncated] = promised<Result<>>();
    store.truncate_data(target, there, std::move(truncated));
    LCCFS_CHECK(cut.get());
    if (there == 0) return {};
    auto [put, written] = promised<Result<>>();
    store.write_data(target, 0, {std::shared_ptr<const char>(bytes, bytes->data()), bytes->data(), there},
                     std::move(written));
    return put.get();
  }

  void write(const Piece& piece, StepsInFlight& steps) {
    const auto extents = extents_of(piece);
    for (const auto& extent : extents) {
      const char* data = piece.bytes->data() + (extent.file_offset_bytes - extents.front().file_offset_bytes);
      io_.instance.store().write_data(format::data_object(target_->ino, extent.index), extent.object_offset_bytes,
                                      {std::shared_ptr<const char>(piece.bytes, data), data, extent.length_bytes},
                                      steps.next());
    }
  }

  void note_pieces(const Part& part) REQUIRES(target_->mutex) {
    for (const Piece& piece : part.pieces) {
      for (const auto& extent : extents_of(piece)) target_->note_there(extent);
    }
  }

  void note_copied(const Part& part, ByteRange range) {
    const Lock lock(target_->mutex);
    target_->note_bytes_up_to(range.end);
    note_pieces(part);
    for (std::size_t i = 0; i < part.objects.size(); ++i) {
      target_->set_units_there(in_target(part.objects[i]),
                               copies_[i] == Copy::source_missing ? 0 : part.units_there[i]);
    }
  }

  /// Some of it may be there.
  void note_begun(const Part& part) {
    const Lock lock(target_->mutex);
    target_->note_change_of_bytes();
    note_pieces(part);
    for (const auto object : part.objects) target_->set_units_there(in_target(object), format::all_units);
  }

  /// What is past the end is cut before the failure is answered.
  Result<> clean_up_after(ByteRange range, Error why) {
    const Lock one_step(target_->step_mutex);
    {
      const Lock lock(target_->mutex);
      if (range.end > target_->view.size_bytes) target_->tail_is_dirty = true;
    }
    LCCFS_CHECK(target_->clean_tail());
    return std::unexpected(std::move(why));
  }

  DataIo& io_;
  const Caller caller_;
  const DataIo::Node source_, target_;
  const std::uint64_t from_, to_;
  const std::uint64_t object_size_ = io_.instance.super().object_size_bytes;
  std::uint64_t size_bytes_;  // of the call: less, once the source's end is known
  std::vector<Copy> copies_;  // of the part's objects
  bool is_complete_ = true;   // the store has done a step on every object of the part
};

/// How much of these bytes the source seems to have, if it is little, and no hole: those are asked for.
std::uint64_t small_part_of(FileNode& source, std::uint64_t from, std::uint64_t size_bytes) {
  const Lock lock(source.mutex);
  const auto end = std::min(from + size_bytes, source.view.size_bytes);
  if (end <= from || end - from > small_bytes) return 0;
  return source.is_mapped(from, end - from) ? end - from : 0;
}

Result<std::size_t> read_and_write(DataIo& io, const Caller& caller, const DataIo::Node& source, std::uint64_t from,
                                   const FileHandle& target, std::uint64_t to, std::uint64_t size_bytes) {
  const auto bytes = std::make_shared<std::vector<char>>(size_bytes);
  auto [got, read] = promised<Result<std::size_t>>();
  io.read(source, from, *bytes, std::move(read));
  LCCFS_TRY(const auto there, got.get());
  if (there == 0) return 0;
  auto [put, written] = promised<Result<std::size_t>>();
  const SharedBytes to_write{std::shared_ptr<const char>(bytes, bytes->data()), bytes->data(), there};
  io.write(target.node, {caller, to, to_write, target.flags}, DataIo::Pages::written, std::move(written));
  auto result = put.get();
  if (!result) io.drop_pages(*target.node, {to, to + there});  // the kernel drops them only where the call succeeds
  return result;
}

}  // namespace

Result<std::uint64_t> Files::copy_file_range(const Caller& caller, HandleId source_id, std::uint64_t source_offset,
                                             HandleId target_id, std::uint64_t target_offset,
                                             std::uint64_t size_bytes) {
  auto source = open_files_.handle(source_id), target = open_files_.handle(target_id);
  if (!source || !target || !for_writing(target->flags)) return failure(ErrorCode::bad_handle, "not open for this");
  LCCFS_CHECK(instance_.check_not_fenced());
  LCCFS_CHECK(check_bytes(target_offset, size_bytes));
  LCCFS_CHECK(check_bytes(source_offset, 0));
  const auto small = source->node == target->node ? 0 : small_part_of(*source->node, source_offset, size_bytes);
  if (small != 0) return read_and_write(io_, caller, source->node, source_offset, *target, target_offset, small);
  return RangeCopy(io_, caller, std::move(source->node), source_offset, std::move(target->node), target_offset,
                   size_bytes)
      .run();
}

void Files::drop_pages_of_copy(HandleId target, std::uint64_t target_offset, std::uint64_t copied_bytes) {
  const auto handle = open_files_.handle(target);
  if (handle) io_.drop_pages(*handle->node, {target_offset, target_offset + copied_bytes});
}

}  // namespace lccfs
