// SPDX-License-Identifier: LGPL-2.1-or-later
//
//  write out  | object   | step                                                   | stop here leaves
//  1          | Data.X.* | write, one for up to 256 runs of neighbouring bytes of | below the stored size: old, new or torn
//             |          | a unit; units side by side, one unit never twice       | bytes; past it: cut at the take-over
#include "fs/write_buffer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "format/object_names.h"

namespace lccfs {

namespace {
/// Unbroken, it is one record.
constexpr std::uint64_t most_unit_bytes = DirtyArena::most_record_bytes;

/// What a piece takes in memory beside its bytes, until it is stored: here, and in librados.
constexpr std::uint64_t piece_overhead_bytes = 512;
/// Each costs the store some ten microseconds or more, and other requests of its object wait meanwhile.
constexpr std::size_t most_runs_of_a_step = 256;

ByteRange range_of(std::uint64_t offset_bytes, const DirtyRecord& record) {
  return {offset_bytes, offset_bytes + record.size_bytes()};
}

std::uint64_t end_of(const std::pair<const std::uint64_t, DirtyRecord>& piece) {
  return range_of(piece.first, piece.second).end;
}

/// Of a record that begins there.
std::span<const char> part_of(ByteRange part, std::uint64_t offset_bytes, const DirtyRecord& record) {
  return record.bytes().subspan(part.begin - offset_bytes, part.end - part.begin);
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
    const auto rest = bytes.subspan(position - offset_bytes);
    if (next != dirty.end() && next->first <= position) {
      const auto length = std::min(end, end_of(*next)) - position;
      if (present == Present::is_replaced) next->second.overwrite(position - next->first, rest.first(length));
      there += length;
      position += length;
      ++next;
      continue;
    }
    const auto length = (next == dirty.end() ? end : std::min(end, next->first)) - position;
    if (next != dirty.begin() && end_of(*std::prev(next)) == position) {
      std::prev(next)->second.append(rest.first(length));
    } else {
      dirty.emplace_hint(next, position, new_record(position, rest.first(length)));
    }
    unit.dirty_bytes += length;
    position += length;
  }
  return there;
}

DirtyRecord WriteBuffer::new_record(std::uint64_t offset_bytes, std::span<const char> bytes) const {
  return {room_->arena(), ino_, offset_bytes, bytes};
}

/// Answers how many bytes it was. What stays of a record is a new one, of its size.
std::uint64_t WriteBuffer::erase(Unit& unit, ByteRange range) {
  Records kept;
  std::uint64_t erased = 0;
  for (auto& [offset, record] : unit.dirty) {
    const auto whole = range_of(offset, record);
    if (!whole.overlaps(range)) {
      kept.emplace_hint(kept.end(), offset, std::move(record));
      continue;
    }
    erased += record.size_bytes();
    for (const ByteRange rest : {ByteRange{0, range.begin}, ByteRange{range.end, UINT64_MAX}}) {
      const auto part = whole.within(rest);
      if (part.is_empty()) continue;
      kept.emplace_hint(kept.end(), part.begin, new_record(part.begin, part_of(part, offset, record)));
      erased -= part.end - part.begin;
    }
  }
  unit.dirty = std::move(kept);
  unit.dirty_bytes -= erased;
  return erased;
}

bool WriteBuffer::is_on_its_way(const Unit& unit, ByteRange range) {
  return std::ranges::any_of(
      unit.sent, [range](const Run& run) { return range_of(run.offset_bytes, *run.record).overlaps(range); });
}

/// Whether something that was put by then is still to reach the store, and will be tried.
bool WriteBuffer::is_pending(const Unit& unit, std::uint64_t last_put) {
  const bool is_to_be_sent = !unit.dirty.empty() && !unit.has_failed && unit.first_put <= last_put;
  return is_to_be_sent || (unit.unanswered != 0 && unit.sent_first_put <= last_put);
}

void WriteBuffer::forget_if_empty(Units::iterator unit) {
  count_pieces(unit->second);
  if (!unit->second.dirty.empty() || unit->second.unanswered != 0) return;
  set_failing(unit->second, false);
  unsent_.erase(unit->first);
  units_.erase(unit);
  if (units_.empty()) room_->remove(this);
}

void WriteBuffer::set_failing(Unit& unit, bool is_failing) {
  if (std::exchange(unit.is_failing, is_failing) == is_failing) return;
  if (is_failing) {
    ++failing_units_;
  } else {
    --failing_units_;
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
      unit.has_failed = false;
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
  const auto add = [&](std::uint64_t offset, const DirtyRecord& record) {
    const auto part = range_of(offset, record).within(range);
    if (part.is_empty()) return;
    const auto bytes = part_of(part, offset, record);
    found.push_back({part.begin, {bytes.begin(), bytes.end()}});
  };
  for (auto at = units_.lower_bound(range.begin / unit_bytes_); at != units_.end() && reaches(*at, range); ++at) {
    for (const Run& run : at->second.sent) add(run.offset_bytes, *run.record);
    for (const auto& [offset, record] : at->second.dirty) add(offset, record);
  }
  return found;
}

std::vector<ByteRange> WriteBuffer::ranges(ByteRange range) const {
  std::vector<ByteRange> found;
  const auto add = [&](std::uint64_t offset, const DirtyRecord& record) {
    const auto part = range_of(offset, record).within(range);
    if (!part.is_empty()) found.push_back(part);
  };
  const Lock lock(mutex_);
  for (auto at = units_.lower_bound(range.begin / unit_bytes_); at != units_.end() && reaches(*at, range); ++at) {
    for (const Run& run : at->second.sent) add(run.offset_bytes, *run.record);
    for (const auto& [offset, record] : at->second.dirty) add(offset, record);
  }
  return found;
}

bool WriteBuffer::has_any_of(ByteRange range) const {
  const Lock lock(mutex_);
  for (auto at = units_.lower_bound(range.begin / unit_bytes_); at != units_.end() && reaches(*at, range); ++at) {
    if (is_on_its_way(at->second, range)) return true;
    for (const auto& [offset, record] : at->second.dirty) {
      if (range_of(offset, record).overlaps(range)) return true;
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

/// Those that adjoin are one run.
std::vector<WriteBuffer::Run> WriteBuffer::runs_of(Records&& records) {
  std::vector<Run> runs;
  while (!records.empty()) {
    const auto first = records.begin();
    auto last = first;
    while (std::next(last) != records.end() && std::next(last)->first == end_of(*last)) ++last;
    const auto size_bytes = end_of(*last) - first->first;
    runs.push_back({first->first, std::make_shared<DirtyRecord>(std::move(first->second))});
    auto& run = *runs.back().record;
    run.reserve(size_bytes);
    for (auto next = records.erase(first); run.size_bytes() < size_bytes; next = records.erase(next)) {
      run.append(next->second.bytes());
    }
  }
  return runs;
}

void WriteBuffer::send(std::uint64_t number, Unit& unit, std::vector<Sending>& sendings) {
  unit.is_wanted = unit.unanswered != 0;
  if (unit.is_wanted || unit.dirty.empty()) return;
  unit.sent = runs_of(std::move(unit.dirty));
  unit.dirty_bytes = 0;
  unsent_.erase(number);
  unit.has_failed = false;
  unit.error.reset();
  unit.sent_first_put = unit.first_put;
  unit.sent_without_room = std::exchange(unit.without_room, 0);
  has_sent_ = true;
  std::size_t count = 0;
  for (const auto& [offset, record] : unit.sent) {
    if (count++ % most_runs_of_a_step == 0) {
      ++unit.unanswered;
      sendings.push_back({number, {}});
    }
    const char* const bytes = record->bytes().data();
    sendings.back().pieces.push_back({offset % object_size_bytes_, {{record, bytes}, bytes, record->size_bytes()}});
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
    for (const Run& run : unit.sent) sent_bytes += run.record->size_bytes();
    waiting.swap(unit.waiting);
    const auto had_room_bytes = sent_bytes - std::exchange(unit.sent_without_room, 0);
    if (unit.error) {
      take_back(unit, had_room_bytes != 0);
    } else {
      failing_ = false;
      if (unit.is_failing && unit.lacked_room) room_->write_found_room();
      set_failing(unit, false);
    }
    room_->give_back(had_room_bytes);  // whoever waits for it sees what failed
    for (const Run& run : unit.sent) run.record->withdraw();
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
  unit.lacked_room = is_out_of_space(*unit.error);
  if (unit.lacked_room) room_->write_refused(*unit.error);
  if (!std::exchange(failing_, true)) {
    log::failed(log::Level::error, format::inode_object(ino_) + ": what was written is not in the store yet",
                *unit.error);
  }
  for (const Run& run : unit.sent) {
    const auto bytes = run.record->bytes();
    unit.without_room += bytes.size() - lay(unit, run.offset_bytes, bytes, Present::stays);
  }
  unit.first_put = unit.sent_first_put;
  unit.has_failed = true;
  set_failing(unit, true);
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
    at->second.has_failed = false;
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
  return failing_ || failing_units_ != 0;
}

void WriteBuffer::succeeded() {
  const Lock lock(mutex_);
  failing_ = false;
}

}  // namespace lccfs
