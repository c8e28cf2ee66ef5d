// SPDX-License-Identifier: LGPL-2.1-or-later
// The producers' half of the reclaim queue (docs/ORDERING.md section 5): a log in the own session object, and the inode
// numbers that its range intents cover.
#include "base/log.h"
#include "instance/instance.h"
#include "txn/instance_txn.h"

namespace lccfs {

using format::QueueItem;

Result<> Instance::log_items(const std::vector<QueueItem>& items) {
  std::vector<txn::NumberedItem> numbered;
  for (const auto& item : items) numbered.emplace_back(next_number_.fetch_add(1), item);
  auto logged = apply_until_known(txn::append_queue_items(id_, numbered));
  if (!logged) {
    Error error = std::move(logged).error();
    if (error.code == ErrorCode::not_found) {
      become_fenced(format::session_object(id_) + " is gone");
      error.code = ErrorCode::fenced;
    }
    return std::unexpected(std::move(error));
  }
  const std::lock_guard lock(queue_mutex_);
  for (const auto& [number, item] : numbered) {
    if (item.kind == QueueItem::Kind::range) range_items_.insert(number);
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
  }
  const Ino ino = next_ino_;
  ++next_ino_.value;
  return ino;
}

/// Only when nothing is in flight and each number is committed, unused or seen removed.
Result<> Instance::drop_range_intents() {
  std::vector<std::uint64_t> numbers;
  {
    const std::lock_guard lock(queue_mutex_);
    numbers.assign(range_items_.begin(), range_items_.end());
    range_items_.clear();
  }
  if (numbers.empty()) return {};
  LCCFS_CHECK(apply_until_known(txn::remove_queue_items(id_, numbers)));
  return {};
}

}  // namespace lccfs
