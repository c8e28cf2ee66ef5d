// SPDX-License-Identifier: LGPL-2.1-or-later
// The producers' half of the reclaim queue (docs/ORDERING.md section 5): a log in the own session object, and the inode
// numbers that its range intents cover.
#include <algorithm>

#include "base/log.h"
#include "format/object_names.h"
#include "instance/instance.h"
#include "txn/volume_txn.h"

namespace lccfs {

using format::QueueItem;

Result<> Instance::log_items(const std::vector<QueueItem>& items) {
  std::vector<txn::NumberedItem> numbered;
  for (const auto& item : items) numbered.emplace_back(next_number_.fetch_add(1), item);
  auto logged = apply_until_known(txn::append_queue_items(id_, numbered));
  if (!logged) {
    Error error = std::move(logged).error();
    if (error.code == ErrorCode::not_found) {
      fate_->become_fenced(format::session_object(id_) + " is gone");
      error.code = ErrorCode::fenced;
    }
    return std::unexpected(std::move(error));
  }
  const std::lock_guard lock(queue_mutex_);
  for (const auto& [number, item] : numbered) {
    if (item.kind == QueueItem::Kind::range) {
      ranges_.push_back({.item = number, .begin = item.ino, .end = item.end, .used_up = std::nullopt});
    }
    if (item.kind == QueueItem::Kind::directory) note_reliance(item.ino, number);
  }
  return {};
}

/// With queue_mutex_ held.
void Instance::note_reliance(Ino directory, std::uint64_t item) {
  directories_relied_on_[directory] = {item, next_number_.fetch_add(1)};
  if (directories_to_tidy_.size() < most_directories_to_tidy) directories_to_tidy_.insert(directory);
}

void Instance::directory_is_gone(Ino directory) {
  const std::lock_guard lock(queue_mutex_);
  directories_to_tidy_.erase(directory);
}

bool Instance::already_relied_on(Ino directory) {
  const std::lock_guard lock(queue_mutex_);
  const auto found = directories_relied_on_.find(directory);
  if (found == directories_relied_on_.end()) return false;
  found->second.last_used = next_number_.fetch_add(1);
  return true;
}

Result<> Instance::rely_on_directory(Ino directory) {
  if (already_relied_on(directory)) return {};
  return log_items({{QueueItem::Kind::directory, directory, {}, clock_.wall_time()}});
}

Result<> Instance::log_inode_and_directory(Ino inode, Ino directory) {
  std::vector<QueueItem> items{{QueueItem::Kind::inode, inode, {}, clock_.wall_time()}};
  if (!already_relied_on(directory)) {
    items.push_back({QueueItem::Kind::directory, directory, {}, clock_.wall_time()});
  }
  return log_items(items);
}

Result<Ino> Instance::allocate_ino() {
  const std::lock_guard lock(numbers_mutex_);
  if (next_ino_ == end_ino_) {
    constexpr std::uint64_t count = 4096;
    LCCFS_TRY(const std::uint64_t first, take_numbers(count));
    LCCFS_CHECK(log_items({{QueueItem::Kind::range, Ino{first}, Ino{first + count}, clock_.wall_time()}}));
    next_ino_ = Ino{first};
    end_ino_ = Ino{first + count};
    const auto dropped = drop_range_intents(Ranges::used_up);
    if (!dropped) log::warning("range intents stay in the queue: " + dropped.error().context);
  }
  const Ino ino = next_ino_;
  ++next_ino_.value;
  note_handed_out(ino);
  return ino;
}

void Instance::note_handed_out(Ino ino) {
  const std::lock_guard lock(queue_mutex_);
  for (auto& range : ranges_) {
    if (ino < range.begin || range.end <= ino) continue;
    if (running_.empty()) range.kept_to_the_end = true;
    if (range.end.value == ino.value + 1) range.used_up = next_number_.fetch_add(1);
  }
}

void Instance::leave_to_collector(Ino ino) {
  if (fenced()) return;  // its range leads there
  const auto logged = log_items({{QueueItem::Kind::inode, ino, {}, clock_.wall_time()}});
  if (logged) return;
  log::error(format::inode_object(ino) + ": not in the queue, its range stays there: " + logged.error().context);
  const std::lock_guard lock(queue_mutex_);
  for (auto& range : ranges_) range.kept = range.kept || (range.begin <= ino && ino < range.end);
}

/// Used up is a range when every operation that began before its last number was handed out is through: what they made
/// has a name, is removed, or has an item of its own. `all`: nothing is in flight.
Result<> Instance::drop_range_intents(Ranges which) {
  std::vector<std::uint64_t> items;
  {
    const std::lock_guard lock(queue_mutex_);
    const auto lowest_running = running_.empty() ? next_number_.load() : *running_.begin();
    for (const auto& range : ranges_) {
      const bool through = range.used_up && *range.used_up < lowest_running && !range.kept_to_the_end;
      if (!range.kept && (through || which == Ranges::all)) items.push_back(range.item);
    }
  }
  if (items.empty()) return {};
  LCCFS_CHECK(apply_until_known(txn::remove_queue_items(id_, items)));
  const std::lock_guard lock(queue_mutex_);
  std::erase_if(ranges_, [&items](const Range& range) { return std::ranges::find(items, range.item) != items.end(); });
  return {};
}

}  // namespace lccfs
