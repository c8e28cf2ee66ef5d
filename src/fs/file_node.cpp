// SPDX-License-Identifier: LGPL-2.1-or-later
//
//  store      | object   | step                                                   | stop here leaves
//  0          | Data.X.* | write out what is buffered (write_buffer.cpp): before  | bytes past the size: cut at the take-over
//             |          | 1 if the size grows, else beside it                    |
//  1          | Inode.X  | [store size, times, map] guard lease = me; what is     | done
//             |          | dirty of size, believed bits and times. (Where X was   |
//             |          | not sent yet, [create inode] does so.)                 |
//
//  map        | object   | step                                                   | stop here leaves
//  1          | Inode.X  | [store size, times, map] guard lease = me; "may exist" | bits that promise nothing
//             |          | and believed bits                                      |
#include "fs/file_node.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "format/layout.h"
#include "format/object_names.h"

namespace lccfs {

using format::MapBlock;

namespace {
/// As the clock that Linux takes for its own file systems goes, with 250 ticks in a second.
constexpr std::chrono::nanoseconds times_stand_for = std::chrono::milliseconds(4);

std::chrono::nanoseconds between(const TimeSpec& earlier, const TimeSpec& later) {
  const auto since = [](const TimeSpec& time) {
    return std::chrono::seconds(time.seconds) + std::chrono::nanoseconds(time.nanoseconds);
  };
  return since(later) - since(earlier);
}
}  // namespace

void FileNode::learn(Inode read) {
  const Lock lock(mutex);
  const bool more_of_map = read.version == view.version && read.map_is_whole && !view.map_is_whole;
  // While the lease is being taken, a part must not replace the map that was read for that: it is about to be the truth.
  const bool is_enough = read.map_is_whole || read.lease != instance_.id();
  const bool is_first = view.ino == Ino{};  // its version may be 0: the store refuses the inode
  if (!lease_held && is_enough && (is_first || read.version > view.version || more_of_map)) {
    take(std::move(read));
  } else {
    learn_attr(read);
  }
}

void FileNode::learn_attr(const Inode& newest) {
  if (newest.version < attr_version_) return;
  view.attr = newest.attr;
  view.attr_raw = newest.attr_raw;
  view.ctime = newest.ctime;
  view.state = newest.state;
  attr_version_ = newest.version;
  attr_sent = std::max(attr_sent, newest.sent);
}

void FileNode::take(Inode read) {
  ++cuts_;
  learn_attr(read);
  read.attr = view.attr;
  read.attr_raw = view.attr_raw;
  read.ctime = view.ctime;
  read.state = view.state;
  view = std::move(read);
  stored_size_bytes = covered_size_bytes = view.size_bytes;
  times_were_told = true;
  nothing_passed_buffer_ = false;
}

std::optional<Attributes> FileNode::acknowledged(const Inode& read) {
  const Lock lock(mutex);
  if (!lease_held || read.lease != instance_.id()) return std::nullopt;
  if (read.version != 0) learn_attr(read);  // 0: it is not stored yet, and known here
  times_were_told = true;
  auto attributes = attributes_of(view, instance_.super().object_size_bytes);
  attributes.size_bytes = size_before_set.value_or(attributes.size_bytes);
  attributes.ctime = std::max(attributes.ctime, read.ctime);
  return attributes;
}

void FileNode::born(Inode made) {
  const Lock lock(mutex);
  kernel_.lease_taken(ino, {});
  take(std::move(made));
  nothing_passed_buffer_ = true;
  lease_held = true;
  is_being_made = true;
}

void FileNode::unborn() {
  const Lock lock(mutex);
  end_unsent();
}

bool FileNode::discard_unless_open() {
  {
    const Lock lock(mutex);
    if (handles > 0 || openings > 0) return false;
    end_unsent();
  }
  buffer->drop(WriteBuffer::everything);
  return true;
}

void FileNode::end_unsent() {
  kernel_.lease_released(ino, {});
  lease_held = false;
  is_being_made = false;
}

// ---- the lease

/// Nothing is answered from memory, and nothing written, before the tail is clean.
Result<> FileNode::taken(Inode inode, const objects::BytesStamp& unchanged_since) {
  const auto size_bytes = inode.size_bytes;
  {
    const Lock lock(mutex);
    for (const auto opener : inode.openers) add_opener(opener);
    take(std::move(inode));
    others_size_bytes = size_bytes;
  }
  if (!unchanged_since.is_known()) {
    LCCFS_CHECK(cut_data(size_bytes));
    believe_some_there();
  }
  // If pages are old, no open may come, and nobody tells the holder: a mapping would show them until the lease is gone.
  const bool has_right_pages = kernel_.lease_taken(ino, unchanged_since);
  if (!has_right_pages) kernel_.changed_elsewhere(ino, [this] { return !is_put_off_by_lock(); });
  return {};
}

bool FileNode::is_put_off_by_lock() {
  const bool is_locked = locks.is_held();
  if (is_locked) is_changed_under_lock = true;
  return is_locked;
}

/// What the last holder has written since it last stored the map is not known. But archivers take a file without any
/// block for one hole, and do not read it.
void FileNode::believe_some_there() {
  const Lock lock(mutex);
  const auto object_size_bytes = instance_.super().object_size_bytes;
  const auto first = view.map.next_mapped(ObjectIndex{0});
  const auto objects = format::object_count(object_size_bytes, view.size_bytes);
  if (!first || first->value >= objects || view.map.blocks_512(object_size_bytes, view.size_bytes) != 0) return;
  note_there({*first, 0, 1, 0});
  note_dirty();
}

Result<MetaTxn> FileNode::release_step() {
  LCCFS_CHECK(write_out());
  LCCFS_CHECK(clean_tail());
  const Lock lock(mutex);
  covered_size_bytes = view.size_bytes;
  auto step = txn::release_lease(ino, instance_.id(), dirty_changes(true));
  released_as_.reset();
  opener_key->end_release(false);  // of one whose step has failed
  if (!to_another_ || !opener_key->begin_release()) return step;
  if (!view.taken) released_as_ = instance_.next_token();
  return txn::with_opener(std::move(step), instance_.id(), released_as_);
}

/// Of no two nodes, either: the answer to a question may come when its node is gone, and there is another of the file.
void FileNode::add_opener(InstanceId opener) {
  static std::atomic<std::uint64_t> times_heard = 0;
  if (opener == instance_.id()) return;
  openers[opener] = ++times_heard;
  is_told_of = true;
}

bool FileNode::is_used_elsewhere() const { return is_shared || is_told_of; }

Result<> FileNode::release_to_another() {
  {
    const Lock lock(mutex);
    to_another_ = true;
  }
  auto released = release();
  const Lock lock(mutex);
  to_another_ = false;
  return released;
}

Result<> FileNode::release_at_any_price() {
  auto released = release();
  if (released || released.error().code == ErrorCode::fenced || buffer->is_empty()) return released;
  lose_buffer(released.error());
  return release();
}

/// The file ends where all bytes are stored: it shows no zeros that nobody wrote. Somebody else's try may be under way:
/// where it succeeds with all of them, nothing is lost.
void FileNode::lose_buffer(const Error& why) {
  const auto puts = buffer->errors().puts;
  bool is_told = instance_.unstored().is_lost(ino);  // of the name
  {
    const Lock lock(mutex);
    is_told = is_told || writers != 0 || has_no_name() || told_of_puts >= puts;
  }
  const auto lost_bytes = lose_what_is_not_stored(why);
  if (lost_bytes == 0) return;
  const auto what = format::inode_object(ino) + ": " + std::to_string(lost_bytes) +
                    " bytes could not be stored, and are lost: " + why.context;
  log::error(what);
  if (!is_told) instance_.losses().note(why.code, what);
  kernel_.pages_are_wrong(ino);
  kernel_.drop_attributes(ino);
}

/// Answers how many bytes it was. Until the size is known, nobody else stores one.
std::uint64_t FileNode::lose_what_is_not_stored(const Error& why) {
  const Lock one_step(step_mutex);
  const auto lost_bytes = buffer->lose(why);
  if (lost_bytes == 0) return 0;
  const Lock lock(mutex);
  view.size_bytes = std::min(view.size_bytes, covered_size_bytes);
  tail_is_dirty = true;
  ++cuts_;
  return lost_bytes;
}

void FileNode::is_told_of_buffer() {
  const auto puts = buffer->errors().puts;
  const Lock lock(mutex);
  told_of_puts = puts;
}

Result<> FileNode::take_back_growth(std::uint64_t size_bytes) {
  {
    const Lock lock(mutex);
    view.size_bytes = size_bytes;
    covered_size_bytes = std::min(covered_size_bytes, size_bytes);
    tail_is_dirty = true;
    ++cuts_;  // who stores the size beside us covers no byte that goes
  }
  return clean_tail();
}

void FileNode::released(std::optional<std::uint64_t> version) {
  view.version = version.value_or(0);
  if (const auto token = std::exchange(released_as_, std::nullopt)) view.taken = token;
  kernel_.lease_released(ino, version ? view.bytes_stamp() : objects::BytesStamp{});
  opener_key->end_release(version.has_value());
  openers.clear();
  is_told_of = false;
  stored_size_bytes = view.size_bytes;
  times_stored = times_changed;
  dirty_map_blocks.clear();
  dirty_unit_blocks.clear();
  dirty_since.reset();
  idle_since.reset();
  view.lease.reset();
  const Stored stored{view, attr_version_, version.has_value()};
  stored_handler_.call([&stored](const StoredHandler& tell) { tell(stored); });
}

// ---- what is to be stored

bool FileNode::is_dirty(bool with_times) const {
  return stored_size_bytes != view.size_bytes || !dirty_map_blocks.empty() ||
         (with_times && (times_stored != times_changed || !dirty_unit_blocks.empty()));
}

void FileNode::note_dirty() {
  if (!dirty_since) dirty_since = instance_.clock().elapsed();
}

void FileNode::set_wtime(const TimeSpec& now) {
  view.wtime = now;
  ++times_changed;
}

void FileNode::note_change() {
  set_wtime(instance_.clock().wall_time());
  note_dirty();
}

/// Writes that follow soon on one another have one time, as long as nobody sees the file in between: so an fsync after each
/// write need not store the times.
bool FileNode::may_times_stand(const TimeSpec& now) const {
  const bool were_set_by_write = view.mtime == view.wtime;
  const bool may_be_seen = times_were_told || was_asked_for || is_used_elsewhere();
  return were_set_by_write && !may_be_seen && view.wtime <= now && between(view.wtime, now) < times_stand_for;
}

void FileNode::note_change_of_bytes() {
  note_dirty();
  const auto now = instance_.clock().wall_time();
  if (may_times_stand(now)) return;
  set_wtime(now);
  view.mtime = now;
  times_were_told = false;
}

void FileNode::note_bytes_up_to(std::uint64_t end_bytes) {
  view.size_bytes = std::max(view.size_bytes, end_bytes);
  if (buffer->is_empty()) covered_size_bytes = view.size_bytes;
  note_change_of_bytes();
}

std::uint64_t FileNode::units_written_by(const format::Extent& piece) const {
  const auto& super = instance_.super();
  if (!super.has(format::feature::space_units)) return format::all_units;
  return format::units_with_any_of(super.object_size_bytes, piece);
}

void FileNode::note_there(const format::Extent& piece) {
  set_units_there(piece.index, view.map.units_there(piece.index) | units_written_by(piece));
}

void FileNode::note_gone(const format::Extent& piece) {
  const auto& super = instance_.super();
  if (!super.has(format::feature::space_units)) return;
  const auto units = format::units_within(super.object_size_bytes, piece);
  set_units_there(piece.index, view.map.units_there(piece.index) & ~units);
}

void FileNode::set_units_there(ObjectIndex index, std::uint64_t units) {
  const auto before = view.map.units_there(index);
  if (before == units) return;
  view.map.set_units_there(index, units);
  auto& dirty = (before == 0) != (units == 0) ? dirty_map_blocks : dirty_unit_blocks;
  dirty.insert(index.value / MapBlock::objects);
}

/// They stay dirty until the step that stores them is answered.
txn::FileChanges FileNode::dirty_changes(bool with_times) {
  txn::FileChanges changes;
  if (with_times && is_dirty(true)) dirty_since = instance_.clock().elapsed();
  if (stored_size_bytes != covered_size_bytes) {
    changes.size_bytes = covered_size_bytes;
    stored_size_bytes.reset();
  }
  if (with_times && times_stored != times_changed) {
    changes.atime = view.atime;
    changes.mtime = view.mtime;
    changes.wtime = view.wtime;
  }
  for (const auto* blocks : {&dirty_map_blocks, &dirty_unit_blocks}) {
    for (const auto block : *blocks) changes.map_blocks[block] = view.map.blocks().at(block);
  }
  return changes;
}

Result<> FileNode::store_dirty(bool with_times) {
  for (;;) {
    if (auto done = try_to_store_dirty(with_times)) return *std::move(done);
  }
}

/// A size is stored after the bytes below it: a crash shows no zeros that nobody wrote. Where it stays, the bytes and
/// the times go side by side. nullopt: the size was set meanwhile, and what of it is stored is to be seen anew.
std::optional<Result<>> FileNode::try_to_store_dirty(bool with_times) {
  std::uint64_t size_bytes = 0, cuts_before = 0;
  bool grows = false;
  {
    const Lock lock(mutex);
    size_bytes = view.size_bytes;
    grows = stored_size_bytes != size_bytes;
    cuts_before = cuts_;
  }
  if (grows) {
    LCCFS_CHECK(write_out());
  } else {
    buffer->begin_write_out();
  }
  Result<> stored;
  {
    const Lock one_step(step_mutex);
    {
      const Lock lock(mutex);
      if (grows && cuts_ != cuts_before) return std::nullopt;
      const auto still_there = std::min(size_bytes, view.size_bytes);
      if (cuts_ == cuts_before) covered_size_bytes = std::max(covered_size_bytes, still_there);
    }
    stored = store_dirty_now(with_times);
  }
  if (!grows) LCCFS_CHECK(write_out());
  const Lock lock(mutex);
  if (!is_dirty(true) && buffer->is_empty()) dirty_since.reset();
  return stored;
}

Result<> FileNode::store_dirty_now(bool with_times) {
  LCCFS_CHECK(settle_release_now());
  txn::FileChanges changes;
  std::uint64_t times = 0;
  {
    const Lock lock(mutex);
    if (!lease_held || !is_dirty(with_times)) return {};
    changes = dirty_changes(with_times);
    times = times_changed;
  }
  if (changes.empty()) return {};
  LCCFS_CHECK(change_leased(changes));
  const Lock lock(mutex);
  if (changes.size_bytes) stored_size_bytes = changes.size_bytes;
  if (changes.wtime) times_stored = times;
  for (const auto& [block, bits] : changes.map_blocks) {
    if (view.map.blocks().at(block) != bits) continue;
    dirty_map_blocks.erase(block);
    dirty_unit_blocks.erase(block);
  }
  return {};
}

Result<> FileNode::change_leased(const txn::FileChanges& changes) {
  auto step = txn::change_leased_file(ino, instance_.id(), changes);
  if (is_part_of_creation(step)) {
    LCCFS_CHECK(instance_.store_inode(ino));
    return {};
  }
  auto stored = instance_.run_repeatable(std::move(step));
  if (stored) return {};
  if (stored.error().code == ErrorCode::guard_failed) {
    // Where this client does not know of a fence yet, no other line tells of it.
    const std::string what = format::inode_object(ino) + ": the lease was taken over by another client";
    log::error(what + ": what is not stored of it is lost");
    return failure(ErrorCode::fenced, what);
  }
  return std::unexpected(gone_is_stale(std::move(stored).error()));
}

void FileNode::passes_buffer() {
  const Lock lock(mutex);
  nothing_passed_buffer_ = false;
}

bool FileNode::is_all_buffered() const { return nothing_passed_buffer_ && !may_be_released && !buffer->has_sent(); }

bool FileNode::is_mapped(std::uint64_t offset_bytes, std::uint64_t size_bytes) const {
  for (const auto& extent : format::extents(instance_.super().object_size_bytes, offset_bytes, size_bytes)) {
    if (!view.map.may_exist(extent.index)) return false;
  }
  return true;
}

Result<> FileNode::map_objects(ObjectIndex first, std::uint64_t count, std::span<const format::Extent> written) {
  const auto end = first.value + count;
  // In a block that is not stored here, a bit "believed there" is set, and dirty, once its object has been written.
  const auto set_bits = [&](AllocationMap& map, const auto& is_stored) {
    for (auto i = first.value; i < end; ++i) map.set_may_exist(ObjectIndex{i});
    for (const auto& piece : written) {
      if (!is_stored(piece.index.value)) continue;
      map.set_units_there(piece.index, map.units_there(piece.index) | units_written_by(piece));
    }
  };
  AllocationMap map;
  {
    const Lock lock(mutex);
    map = view.map.blocks_of(first, count);
  }
  txn::FileChanges changes;
  for (auto i = first.value; i < end; ++i) {
    if (!map.may_exist(ObjectIndex{i})) changes.map_blocks[i / MapBlock::objects] = {};
  }
  const auto is_stored = [&](std::uint64_t i) { return changes.map_blocks.contains(i / MapBlock::objects); };
  set_bits(map, is_stored);
  for (auto& [block, bits] : changes.map_blocks) bits = map.blocks().at(block);
  if (!changes.empty()) LCCFS_CHECK(change_leased(changes));
  const Lock lock(mutex);
  set_bits(view.map, is_stored);
  return {};
}

}  // namespace lccfs
