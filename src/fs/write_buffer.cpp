// SPDX-License-Identifier: LGPL-2.1-or-later
//
//  write out  | object   | step                                                   | stop here leaves
//  1          | Data.X.* | write, one for up to 256 runs of neighbouring bytes of | below the stored size: old, new or torn
//             |          | a unit; units side by side, one unit never twice       | bytes; past it: cut at the take-over
#include "fs/write_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "format/object_names.h"

namespace lccfs {

namespace {
constexpr std::uint64_t most_unit_bytes = 1 << 20;
/// So much, one after the other, will fill its unit: it is not to be copied each time it grows.
constexpr std::size_t is_a_stream_bytes = 256 << 10;

/// What a piece takes in memory beside its bytes, until it is stored: here, and in librados.
constexpr std::uint64_t piece_overhead_bytes = 512;
/// Each costs the store some ten microseconds or more, and other requests of its object wait meanwhile.
constexpr std::size_t most_runs_of_a_step = 256;

std::uint64_t end_of(const std::pair<const std::uint64_t, std::string>& piece) {
  return piece.first + piece.second.size();
}

/// The part of those bytes that lies in the range, if any.
std::optional<WriteBuffer::Piece> part_of(ByteRange range, std::uint64_t offset_bytes, const std::string& bytes) {
  const auto begin = std::max(range.begin, offset_bytes), end = std::min(range.end, offset_bytes + bytes.size());
  if (begin >= end) return std::nullopt;
  return WriteBuffer::Piece{begin, bytes.substr(begin - offset_bytes, end - begin)};
}
}  // namespace

WriteBuffer::WriteBuffer(Ino ino, ObjectStore& store, std::uint64_t object_size_bytes, std::shared_ptr<DirtyRoom> room)
    : ino_(ino),
      store_(store),
      object_size_bytes_(object_size_bytes),
      unit_bytes_(std::min(object_size_bytes, most_unit_bytes)),
      room_(std::move(room)) {}

// ---- units

WriteBuffer::Units::iterator WriteBuffer::first_of(ByteRange range) {
  return units_.lower_bound(range.begin / unit_bytes_);
}

bool WriteBuffer::reaches(const Units::value_type& unit, ByteRange range) const {
  return unit.first <= (range.end - 1) / unit_bytes_;
}

std::uint64_t WriteBuffer::lay(Unit& unit, std::uint64_t offset_bytes, std::span<const char> bytes, Present present) {
  auto& dirty = unit.dirty;
  auto position = offset_bytes;
  const auto end = offset_bytes + bytes.size();
  std::uint64_t there = 0;
  auto next = dirty.upper_bound(position);
  if (next != dirty.begin() && end_of(*std::prev(next)) > position) --next;
  while (position < end) {
    const char* from = bytes.data() + (position - offset_bytes);
    if (next != dirty.end() && next->first <= position) {
      const auto length = std::min(end, end_of(*next)) - position;
      if (present == Present::is_replaced) std::memcpy(next->second.data() + (position - next->first), from, length);
      there += length;
      position += length;
      ++next;
      continue;
    }
    const auto length = (next == dirty.end() ? end : std::min(end, next->first)) - position;
    if (next != dirty.begin() && end_of(*std::prev(next)) == position) {
      auto& piece = std::prev(next)->second;
      if (piece.size() >= is_a_stream_bytes) piece.reserve(most_unit_bytes);
      piece.append(from, length);
    } else {
      dirty.emplace_hint(next, position, std::string(from, length));
    }
    unit.dirty_bytes += length;
    position += length;
  }
  return there;
}

/// Answers how many bytes it was.
std::uint64_t WriteBuffer::erase(Unit& unit, ByteRange range) {
  std::map<std::uint64_t, std::string> kept;
  std::uint64_t kept_bytes = 0;
  const auto keep = [&](std::optional<Piece> part) {
    if (!part) return;
    kept_bytes += part->bytes.size();
    kept.emplace(part->offset_bytes, std::move(part->bytes));
  };
  for (const auto& [offset, bytes] : unit.dirty) {
    keep(part_of({0, range.begin}, offset, bytes));
    keep(part_of({range.end, UINT64_MAX}, offset, bytes));
  }
  const auto erased = unit.dirty_bytes - kept_bytes;
  unit.dirty = std::move(kept);
  unit.dirty_bytes = kept_bytes;
  return erased;
}

bool WriteBuffer::is_on_its_way(const Unit& unit, ByteRange range) {
  return std::ranges::any_of(unit.sent, [range](const Run& run) {
    return ByteRange{run.offset_bytes, run.offset_bytes + run.bytes->size()}.overlaps(range);
  });
}

/// Whether something that was put by then is still to reach the store, and will be tried.
bool WriteBuffer::is_pending(const Unit& unit, std::uint64_t last_put) {
  const bool is_to_be_sent = !unit.dirty.empty() && !unit.has_failed && unit.first_put <= last_put;
  return is_to_be_sent || (unit.unanswered != 0 && unit.sent_first_put <= last_put);
}

void WriteBuffer::forget_if_empty(Units::iterator unit) {
  count_pieces(unit->second);
  if (!unit->second.dirty.empty() || unit->second.unanswered != 0) return;
  set_failed(unit->second, false);
  unsent_.erase(unit->first);
  units_.erase(unit);
  if (units_.empty()) room_->remove(this);
}

void WriteBuffer::set_failed(Unit& unit, bool has_failed) {
  if (std::exchange(unit.has_failed, has_failed) == has_failed) return;
  if (has_failed) {
    ++failed_units_;
  } else {
    --failed_units_;
  }
}

void WriteBuffer::note_unsent(std::uint64_t number, const Unit& unit) {
  if (!unit.dirty.empty() && unit.unanswered == 0 && !unit.has_failed) unsent_.insert(number);
}

/// That of one piece alone is not worth counting.
std::uint64_t WriteBuffer::overhead_bytes() const {
  return piece_overhead_bytes * (std::max<std::size_t>(counted_pieces_, 1) - 1);
}

/// Like its bytes, pieces do not count against the limit from their failure until they are stored.
void WriteBuffer::count_pieces(Unit& unit) {
  const bool has_room = !unit.has_failed && unit.without_room == 0 && unit.sent_without_room == 0;
  const std::size_t pieces = has_room ? unit.dirty.size() + unit.sent.size() : 0;
  if (pieces == unit.counted_pieces) return;
  const auto before = overhead_bytes();
  counted_pieces_ = counted_pieces_ - std::exchange(unit.counted_pieces, pieces) + pieces;
  room_->recount(before, overhead_bytes());
}

// ---- what is written, and read

void WriteBuffer::put(std::uint64_t offset_bytes, std::span<const char> bytes) {
  std::vector<Sending> sendings;
  {
    const Lock lock(mutex_);
    if (units_.empty()) room_->add(shared_from_this());
    ++puts_;
    const bool is_short = room_->is_short();
    std::uint64_t there = 0;
    for (auto offset = offset_bytes; !bytes.empty();) {
      const auto number = offset / unit_bytes_;
      const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), (number + 1) * unit_bytes_ - offset));
      Unit& unit = units_[number];
      if (unit.dirty.empty()) unit.first_put = puts_;
      there += lay(unit, offset, part, Present::is_replaced);
      set_failed(unit, false);
      note_unsent(number, unit);
      if (is_short || unit.dirty_bytes == unit_bytes_) send(number, unit, sendings);
      count_pieces(unit);
      offset += part.size();
      bytes = bytes.subspan(part.size());
    }
    room_->give_back(there);
  }
  issue(std::move(sendings));
}

std::vector<WriteBuffer::Piece> WriteBuffer::pieces(ByteRange range) const {
  const Lock lock(mutex_);
  std::vector<Piece> found;
  const auto add = [&](std::uint64_t offset, const std::string& bytes) {
    if (auto part = part_of(range, offset, bytes)) found.push_back(std::move(*part));
  };
  for (auto at = units_.lower_bound(range.begin / unit_bytes_); at != units_.end() && reaches(*at, range); ++at) {
    for (const Run& run : at->second.sent) add(run.offset_bytes, *run.bytes);
    for (const auto& [offset, bytes] : at->second.dirty) add(offset, bytes);
  }
  return found;
}

std::vector<ByteRange> WriteBuffer::ranges(ByteRange range) const {
  std::vector<ByteRange> found;
  const auto add = [&](std::uint64_t begin, std::uint64_t size_bytes) {
    const auto part = range.within({begin, begin + size_bytes});
    if (!part.is_empty()) found.push_back(part);
  };
  const Lock lock(mutex_);
  for (auto at = units_.lower_bound(range.begin / unit_bytes_); at != units_.end() && reaches(*at, range); ++at) {
    for (const Run& run : at->second.sent) add(run.offset_bytes, run.bytes->size());
    for (const auto& [offset, bytes] : at->second.dirty) add(offset, bytes.size());
  }
  return found;
}

bool WriteBuffer::has_any_of(ByteRange range) const {
  const Lock lock(mutex_);
  for (auto at = units_.lower_bound(range.begin / unit_bytes_); at != units_.end() && reaches(*at, range); ++at) {
    if (is_on_its_way(at->second, range)) return true;
    for (const auto& piece : at->second.dirty) {
      if (ByteRange{piece.first, end_of(piece)}.overlaps(range)) return true;
    }
  }
  return false;
}

bool WriteBuffer::is_empty() const {
  const Lock lock(mutex_);
  return units_.empty();
}

std::uint64_t WriteBuffer::bytes_without_room() const {
  const Lock lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& [number, unit] : units_) {
    const auto pieces = unit.dirty.size() + unit.sent.size() - unit.counted_pieces;
    bytes += unit.without_room + unit.sent_without_room + piece_overhead_bytes * pieces;
  }
  return bytes;
}

bool WriteBuffer::has_sent() const {
  const Lock lock(mutex_);
  return has_sent_;
}

// ---- writing out

void WriteBuffer::send(std::uint64_t number, Unit& unit, std::vector<Sending>& sendings) {
  unit.is_wanted = unit.unanswered != 0;
  if (unit.is_wanted || unit.dirty.empty()) return;
  std::vector<std::pair<std::uint64_t, std::string>> runs;
  for (auto& [offset, bytes] : unit.dirty) {
    const bool continues = !runs.empty() && runs.back().first + runs.back().second.size() == offset;
    if (continues) {
      runs.back().second += bytes;
    } else {
      runs.emplace_back(offset, std::move(bytes));
    }
  }
  unit.dirty.clear();
  unit.dirty_bytes = 0;
  unsent_.erase(number);
  set_failed(unit, false);
  unit.error.reset();
  unit.sent_first_put = unit.first_put;
  unit.sent_without_room = std::exchange(unit.without_room, 0);
  has_sent_ = true;
  std::size_t count = 0;
  for (auto& [offset, run] : runs) {
    if (count++ % most_runs_of_a_step == 0) {
      ++unit.unanswered;
      sendings.push_back({number, {}});
    }
    const auto bytes = std::make_shared<const std::string>(std::move(run));
    unit.sent.push_back({offset, bytes});
    sendings.back().pieces.push_back(
        {offset % object_size_bytes_, {{bytes, bytes->data()}, bytes->data(), bytes->size()}});
  }
  count_pieces(unit);
}

void WriteBuffer::issue(std::vector<Sending>&& sendings) {
  for (auto& [number, pieces] : sendings) {
    const ObjectIndex object{number * unit_bytes_ / object_size_bytes_};
    store_.write_data(
        format::data_object(ino_, object), std::move(pieces),
        [self = shared_from_this(), unit = number](Result<> written) { self->answered(unit, std::move(written)); });
  }
}

/// The last answer for a unit counts for all of its runs.
void WriteBuffer::answered(std::uint64_t number, Result<> written) {
  std::vector<Sending> sendings;
  std::vector<Done> waiting;
  {
    const Lock lock(mutex_);
    const auto at = units_.find(number);
    Unit& unit = at->second;
    if (!written) unit.error = std::move(written).error();
    if (--unit.unanswered != 0) return;
    std::uint64_t sent_bytes = 0;
    for (const Run& run : unit.sent) sent_bytes += run.bytes->size();
    waiting.swap(unit.waiting);
    const auto had_room_bytes = sent_bytes - std::exchange(unit.sent_without_room, 0);
    if (unit.error) {
      take_back(unit, had_room_bytes != 0);
    } else {
      failing_ = false;
    }
    room_->give_back(had_room_bytes);  // whoever waits for it sees what failed
    unit.sent.clear();
    count_pieces(unit);
    note_unsent(number, unit);
    const bool goes_on = unit.is_wanted || unit.dirty_bytes == unit_bytes_ || room_->is_short();
    if (goes_on && !unit.has_failed) send(number, unit, sendings);
    forget_if_empty(at);
    changed_.notify_all();
  }
  issue(std::move(sendings));
  for (auto& done : waiting) done();
}

/// Below what was written since. `is_news`: some of it had not failed before.
void WriteBuffer::take_back(Unit& unit, bool is_news) {
  unit.failed_at = ++failures_;
  if (is_news) ++errors_.count;
  errors_.last = unit.error;
  if (is_out_of_space(*unit.error)) room_->set_refused(true);
  if (!std::exchange(failing_, true)) {
    log::error(format::inode_object(ino_) + ": what was written is not in the store yet: " + unit.error->context);
  }
  for (const Run& run : unit.sent) {
    unit.without_room += run.bytes->size() - lay(unit, run.offset_bytes, *run.bytes, Present::stays);
  }
  unit.first_put = unit.sent_first_put;
  set_failed(unit, true);
}

void WriteBuffer::begin_write_out() {
  std::vector<Sending> sendings;
  {
    const Lock lock(mutex_);
    for (const auto number : std::vector(unsent_.begin(), unsent_.end())) send(number, units_.at(number), sendings);
  }
  issue(std::move(sendings));
}

/// No unit is smaller than that.
void WriteBuffer::when_beginning_is_answered(Done done) {
  {
    const Lock lock(mutex_);
    const auto first = units_.find(0);
    if (first != units_.end() && first->second.unanswered != 0) return first->second.waiting.push_back(std::move(done));
  }
  done();
}

Result<> WriteBuffer::write_out(ByteRange range) {
  std::vector<Sending> sendings;
  Lock lock(mutex_);
  const auto failures_before = failures_, losses_before = losses_;
  const auto last_put = puts_;
  for (auto at = first_of(range); at != units_.end() && reaches(*at, range); ++at) {
    set_failed(at->second, false);
    send(at->first, at->second, sendings);
  }
  lock.unlock();
  issue(std::move(sendings));
  lock.lock();
  const auto is_all_there = [&]() REQUIRES(mutex_) {
    for (auto at = first_of(range); at != units_.end() && reaches(*at, range); ++at) {
      if (is_pending(at->second, last_put)) return false;
    }
    return true;
  };
  lock.wait(changed_, is_all_there);
  for (auto at = first_of(range); at != units_.end() && reaches(*at, range); ++at) {
    if (at->second.failed_at > failures_before) return std::unexpected(at->second.error.value_or(*errors_.last));
  }
  return losses_ == losses_before ? Result<>() : std::unexpected(*lost_by_);
}

std::uint64_t WriteBuffer::drop(ByteRange range) { return erase_all(range, nullptr); }
std::uint64_t WriteBuffer::lose(const Error& why) { return erase_all(everything, &why); }

/// `lost_by`: who waits for the bytes is told so.
std::uint64_t WriteBuffer::erase_all(ByteRange range, const Error* lost_by) {
  Lock lock(mutex_);
  std::uint64_t dropped = 0;
  const auto drop_what_rests = [&]() REQUIRES(mutex_) {
    bool is_all = true;
    for (auto at = first_of(range); at != units_.end() && reaches(*at, range);) {
      const auto here = at++;
      Unit& unit = here->second;
      const auto erased = erase(unit, range);
      const auto without_room = std::min(erased, unit.without_room);
      unit.without_room -= without_room;
      room_->give_back(erased - without_room);
      dropped += erased;
      if (erased > 0 && lost_by != nullptr) {
        ++losses_;
        lost_by_ = errors_.last = *lost_by;
        ++errors_.count;
      }
      is_all = is_all && !is_on_its_way(unit, range);
      forget_if_empty(here);
    }
    return is_all;
  };
  lock.wait(changed_, drop_what_rests);
  changed_.notify_all();
  return dropped;
}

// ---- errors

WriteBuffer::Errors WriteBuffer::errors() const {
  const Lock lock(mutex_);
  return {errors_.count, errors_.last, puts_};
}

bool WriteBuffer::is_failing() const {
  const Lock lock(mutex_);
  return failing_ || failed_units_ != 0;
}

void WriteBuffer::succeeded() {
  const Lock lock(mutex_);
  failing_ = false;
}

}  // namespace lccfs
