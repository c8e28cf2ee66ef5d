// SPDX-License-Identifier: LGPL-2.1-or-later
#include "instance/queue.h"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <memory>
#include <stop_token>
#include <utility>

#include "base/completions.h"
#include "base/log.h"
#include "format/object_names.h"
#include "objects/super.h"

namespace lccfs {

using format::QueueItem;

namespace {
constexpr std::uint64_t inode_numbers_at_once = 4096;
static_assert(inode_numbers_at_once <= QueueItem::most_numbers);
constexpr std::size_t most_directories_to_tidy = 1024;
constexpr std::size_t most_items_at_once = 512;
constexpr std::chrono::seconds longest_wait_for_directories{5};  // at the end
}  // namespace

Result<std::uint64_t> take_numbers(Steps& steps, std::uint64_t count) {
  for (;;) {
    const auto alloc = steps.query({.object = format::alloc_object, .xattrs = true});
    LCCFS_TRY(const std::uint64_t next, objects::next_number_in(alloc));
    auto taken = steps.apply_until_known(txn::take_numbers(next, count));
    if (taken) return next;
    if (taken.error().code != ErrorCode::guard_failed) return std::unexpected(std::move(taken).error());
  }
}

void OwnQueue::log_items_async(const std::vector<QueueItem>& items, ObjectStore::DataDone done) {
  std::vector<txn::NumberedItem> numbered;
  numbered.reserve(items.size());
  for (const auto& item : items) numbered.push_back({numbers_.next(), item});
  auto step = txn::append_queue_items(me_, numbered);
  steps_.apply_until_known_async(
      std::move(step), [this, numbered = std::move(numbered), done = std::move(done)](Result<Applied> logged) mutable {
        if (!logged && logged.error().code == ErrorCode::not_found) {
          steps_.become_fenced(format::session_object(me_) + " is gone");
          logged.error().code = ErrorCode::fenced;
        }
        if (!logged) return done(std::unexpected(std::move(logged).error()));
        note_logged(numbered);
        done({});
      });
}

Result<> OwnQueue::log_items(const std::vector<QueueItem>& items) {
  auto [answer, done] = promised<Result<>>();
  log_items_async(items, std::move(done));
  return answer.get();
}

void OwnQueue::note_logged(const std::vector<txn::NumberedItem>& items) {
  const Lock lock(mutex_);
  for (const auto& [number, item] : items) {
    if (item.kind == QueueItem::Kind::range) {
      ranges_.push_back({.item = number, .begin = item.ino, .end = item.end, .used_up = std::nullopt});
    }
    if (item.kind == QueueItem::Kind::directory) {
      relied_on_[item.ino] = {number, numbers_.next()};
      if (directories_to_tidy_.size() < most_directories_to_tidy) directories_to_tidy_.insert(item.ino);
    }
  }
}

void OwnQueue::directory_is_gone(Ino directory) {
  const Lock lock(mutex_);
  directories_to_tidy_.erase(directory);
}

bool OwnQueue::already_relied_on(Ino directory) {
  const Lock lock(mutex_);
  const auto found = relied_on_.find(directory);
  if (found == relied_on_.end()) return false;
  found->second.last_used = numbers_.next();
  return true;
}

void OwnQueue::rely_on_directory_async(Ino directory, ObjectStore::DataDone done) {
  if (already_relied_on(directory)) return done({});
  log_later(QueueItem::Kind::directory, directory, std::move(done));
}

void OwnQueue::log_later(QueueItem::Kind kind, Ino ino, ObjectStore::DataDone done) {
  {
    const Lock lock(mutex_);
    to_be_logged_.push_back({kind, ino, std::move(done)});
    if (std::exchange(is_logging_, true)) return;
  }
  log_what_waits();
}

/// Those that came while others were on their way go in one write.
void OwnQueue::log_what_waits() {
  std::vector<ToBeLogged> taken;
  {
    const Lock lock(mutex_);
    const auto end =
        to_be_logged_.begin() + static_cast<std::ptrdiff_t>(std::min(to_be_logged_.size(), most_items_at_once));
    std::move(to_be_logged_.begin(), end, std::back_inserter(taken));
    to_be_logged_.erase(to_be_logged_.begin(), end);
  }
  std::set<std::pair<QueueItem::Kind, Ino>> distinct;
  for (const auto& one : taken) distinct.emplace(one.kind, one.ino);
  std::vector<QueueItem> items;
  items.reserve(distinct.size());
  for (const auto& [kind, ino] : distinct) items.push_back(item(kind, ino));
  log_items_async(items, [this, taken = std::move(taken)](const Result<>& logged) mutable {
    if (has_more_to_log()) log_what_waits();
    for (auto& one : taken) one.done(logged);  // then this may be gone
  });
}

bool OwnQueue::has_more_to_log() {
  const Lock lock(mutex_);
  return is_logging_ = !to_be_logged_.empty();
}

Result<> OwnQueue::rely_on_directory(Ino directory) {
  auto [answer, done] = promised<Result<>>();
  rely_on_directory_async(directory, std::move(done));
  return answer.get();
}

Result<> OwnQueue::log_inode_and_directories(Ino inode, std::span<const Ino> directories) {
  std::vector items{item(QueueItem::Kind::inode, inode)};
  for (const Ino directory : directories) {
    if (!already_relied_on(directory)) items.push_back(item(QueueItem::Kind::directory, directory));
  }
  return log_items(items);
}

std::uint64_t OwnQueue::drop_directory_items() {
  const Lock lock(mutex_);
  const auto lowest_running = numbers_.lowest_running();
  // An operation that relied on an item and still runs began before the item was used last.
  for (const auto& [directory, relied_on] : relied_on_) dropped_items_.push_back(relied_on);
  relied_on_.clear();
  std::erase_if(dropped_items_, [=](const ReliedOn& item) { return item.last_used < lowest_running; });
  auto lowest = lowest_running;
  for (const auto& item : dropped_items_) lowest = std::min(lowest, item.item);
  return lowest;
}

Result<> OwnQueue::begin_range(std::uint64_t first, std::uint64_t count) {
  const Lock lock(inos_mutex_);
  return begin_range_locked(first, count);
}

Result<> OwnQueue::begin_range_locked(std::uint64_t first, std::uint64_t count) {
  LCCFS_CHECK(log_items({item(QueueItem::Kind::range, Ino{first}, Ino{first + count})}));
  next_ino_ = Ino{first};
  end_ino_ = Ino{first + count};
  return {};
}

Result<Ino> OwnQueue::allocate_ino() {
  const Lock lock(inos_mutex_);
  if (next_ino_ == end_ino_) {
    LCCFS_TRY(const std::uint64_t first, take_numbers(steps_, inode_numbers_at_once));
    LCCFS_CHECK(begin_range_locked(first, inode_numbers_at_once));
    const auto dropped = drop_range_intents(Ranges::used_up);
    if (!dropped) log::failed(log::Level::warning, "range intents stay in the queue", dropped.error());
  }
  const Ino ino = next_ino_;
  ++next_ino_.value;
  note_handed_out(ino);
  return ino;
}

void OwnQueue::note_handed_out(Ino ino) {
  const Lock lock(mutex_);
  for (auto& range : ranges_) {
    if (!range.covers(ino)) continue;
    if (!numbers_.is_anything_running()) range.kept_to_the_end = true;
    if (range.end.value == ino.value + 1) range.used_up = numbers_.next();
  }
}

void OwnQueue::leave_to_collector(Ino ino) {
  if (steps_.fenced()) return;  // its range leads there
  const auto logged = log_items({item(QueueItem::Kind::inode, ino)});
  if (logged) return;
  log::failed(log::Level::error, format::inode_object(ino) + ": not in the queue, its range stays there",
              logged.error());
  keep_range_of(ino);
}

void OwnQueue::leave_to_collector_async(Ino ino) {
  if (steps_.fenced() || !keep_range_of(ino)) return;
  in_flight_.enter();
  log_later(QueueItem::Kind::inode, ino, [this](const Result<>&) { in_flight_.leave(); });
}

bool OwnQueue::keep_range_of(Ino ino) {
  const Lock lock(mutex_);
  const auto range = std::ranges::find_if(ranges_, [ino](const Range& one) { return one.covers(ino); });
  if (range == ranges_.end()) return false;
  return range->kept = true;
}

/// Used up is a range when every operation that began before its last number was handed out is through: what they made
/// has a name, is removed, or has an item of its own.
Result<> OwnQueue::drop_range_intents(Ranges which) {
  if (which == Ranges::all) in_flight_.wait();
  std::vector<std::uint64_t> items;
  {
    const Lock lock(mutex_);
    const auto lowest_running = numbers_.lowest_running();
    for (const auto& range : ranges_) {
      const bool through = range.used_up && *range.used_up < lowest_running && !range.kept_to_the_end;
      if (!range.kept && (through || which == Ranges::all)) items.push_back(range.item);
    }
  }
  if (items.empty()) return {};
  LCCFS_CHECK(steps_.apply_until_known(txn::remove_queue_items(me_, items)));
  const Lock lock(mutex_);
  std::erase_if(ranges_, [&items](const Range& range) { return std::ranges::find(items, range.item) != items.end(); });
  return {};
}

/// A step is waited for once it is sent, even at the end of the store: only directories get one that answer a read.
std::vector<Ino> OwnQueue::that_answer(const std::set<Ino>& directories) {
  struct Reads {
    explicit Reads(std::size_t count) : missing(count) {}
    Mutex mutex;
    std::condition_variable changed;
    std::size_t missing GUARDED_BY(mutex);
    std::vector<Ino> there GUARDED_BY(mutex);
  };
  const auto reads = std::make_shared<Reads>(directories.size());
  std::stop_source stop;
  for (const Ino directory : directories) {
    const auto note = [reads, directory](const Result<MetaSnapshot>& answer) {
      const Lock noting(reads->mutex);
      if (answer) reads->there.push_back(directory);
      if (--reads->missing == 0) reads->changed.notify_all();
    };
    steps_.query_async({.object = format::inode_object(directory)}, note, stop.get_token());
  }
  Lock lock(reads->mutex);
  const auto all = [&reads]() REQUIRES(reads->mutex) { return reads->missing == 0; };
  if (!all()) clock_.wait_for(reads->changed, lock, longest_wait_for_directories, all);
  auto there = reads->there;
  lock.unlock();
  stop.request_stop();
  return there;
}

Result<> OwnQueue::remove_step_numbers() {
  std::set<Ino> directories;
  {
    const Lock lock(mutex_);
    directories.swap(directories_to_tidy_);
  }
  StepsInFlight removals;
  for (const Ino directory : that_answer(directories)) {
    steps_.store().apply_async(txn::remove_step_number(directory, me_),
                               [done = removals.next()](const Result<Applied>& applied) mutable {
                                 const bool fenced = !applied && applied.error().code == ErrorCode::fenced;
                                 done(fenced ? Result<>(std::unexpected(applied.error())) : Result<>());
                               });
  }
  return removals.wait();
}

Result<bool> OwnQueue::is_empty() {
  LCCFS_TRY(const auto session, steps_.query({.object = format::session_object(me_), .ranges = {{"q/", "", 1}}}));
  return session.ranges.front().entries.empty();
}

}  // namespace lccfs
