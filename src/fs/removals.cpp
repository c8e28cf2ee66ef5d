// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/removals.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <utility>

#include "format/object_names.h"
#include "txn/reclaim_txn.h"

namespace lccfs {

namespace {
/// Beyond, they are left to collectors: each that waits keeps an operation running.
constexpr std::size_t most_removals_waiting = 32'768;
/// Others' work goes on beside it.
constexpr unsigned most_each_second = 1024, most_at_once = 4;
/// What has more takes long: a collector is better at that.
constexpr std::size_t most_data_objects = 64;
constexpr std::size_t keys_at_once = 64;
/// Of what is in use: its lease may be on its way back.
constexpr unsigned most_tries = 3;

bool may_be_removed(const Inode& inode, Ino directory) {
  const bool is_plain = inode.live() && !inode.sealed() && !inode.is_directory();
  const bool has_one_name = inode.attr.nlink <= 1 && inode.parent && inode.parent->parent == directory &&
                            inode.extra_ranges.front().entries.empty();
  return is_plain && has_one_name && !inode.lease && inode.openers.empty();
}

/// nullopt: too many.
std::optional<std::vector<std::string>> data_objects_of(const Inode& inode) {
  using format::MapBlock;
  std::vector<std::string> objects;
  for (const auto& [block, bits] : inode.map.blocks()) {
    for (auto i = bits.may_exist._Find_first(); i < MapBlock::objects; i = bits.may_exist._Find_next(i)) {
      if (objects.size() == most_data_objects) return std::nullopt;
      objects.push_back(format::data_object(inode.ino, ObjectIndex{block * MapBlock::objects + i}));
    }
  }
  return objects;
}
}  // namespace

struct Removals::Removal {
  Ino directory;
  Unlinked unlinked;
  std::uint64_t version = 0;
  std::atomic<std::size_t> objects_left = 0;
  std::atomic<bool> has_failed = false;
};

void Removals::add(Ino directory, Unlinked unlinked) {
  const Lock lock(mutex_);
  if (how_many_wait_ == most_removals_waiting) return;
  waiting_[directory].push_back(std::move(unlinked));
  ++how_many_wait_;
}

void Removals::leave(Ino directory) {
  std::deque<Unlinked> left;  // what they keep ends without the mutex
  std::vector<std::string> keys;
  {
    const Lock lock(mutex_);
    for (auto& [its, unlinked] : later_) {
      if (its == directory) left.push_back(std::move(unlinked));
    }
    std::erase_if(later_, [directory](const auto& one) { return one.first == directory; });
    if (auto waiting = waiting_.extract(directory)) {
      how_many_wait_ -= waiting.mapped().size();
      std::ranges::move(waiting.mapped(), std::back_inserter(left));
    }
    if (auto removed = keys_.extract(directory)) keys = std::move(removed.mapped());
  }
  if (!keys.empty()) remove_keys(directory, keys);
}

void Removals::drop_all() {
  decltype(waiting_) left;
  decltype(later_) left_for_later;
  const Lock lock(mutex_);
  left.swap(waiting_);
  left_for_later.swap(later_);
  how_many_wait_ = 0;
}

void Removals::leave_all() {
  drop_all();
  in_flight_.wait();
}

void Removals::tick() {
  decltype(later_) again;
  {
    const Lock lock(mutex_);
    may_begin_ = most_each_second;
    again.swap(later_);
  }
  if (instance_.fenced()) return drop_all();
  for (auto& [directory, unlinked] : again) add(directory, std::move(unlinked));
  begin_some();
}

/// nullptr: none may begin.
Removals::Shared Removals::next() {
  if (waiting_.empty() || may_begin_ == 0 || running_ == most_at_once) return nullptr;
  const auto first = waiting_.begin();
  auto removal = std::make_shared<Removal>(first->first, std::move(first->second.front()));
  first->second.pop_front();
  if (first->second.empty()) waiting_.erase(first);
  --how_many_wait_;
  --may_begin_;
  ++running_;
  return removal;
}

/// A completion that comes while one begins leaves the next to who began that.
void Removals::begin_some() {
  Lock lock(mutex_);
  if (is_beginning_) return;
  is_beginning_ = true;
  while (const auto removal = next()) {
    in_flight_.enter();
    lock.unlock();
    begin(removal);
    lock.lock();
  }
  is_beginning_ = false;
}

/// Hidden first: whoever opens it from then on finds it gone, and who has begun before is found here.
void Removals::begin(const Shared& removal) {
  const Ino ino = removal->unlinked.ino;
  auto& unstored = instance_.unstored();
  unstored.hide(ino);
  if (is_in_use_(ino)) return try_later(removal);
  const objects::Query beneath = [&unstored](MetaRead read, ObjectStore::QueryDone done) {
    unstored.beneath().query_async(std::move(read), std::move(done));
  };
  const objects::InodeParts parts{
      .extra_ranges = {{"p/", "", 1}}, .keys = {}, .map = objects::InodeParts::Map::whole, .openers = true};
  objects::read_inode_async(beneath, ino, parts, [this, removal](const Result<Inode>& inode) {
    if (!inode || !may_be_removed(*inode, removal->directory)) return end(removal, false);
    remove_data(removal, *inode);
  });
}

void Removals::try_later(const Shared& removal) {
  if (++removal->unlinked.tries < most_tries) {
    const Lock lock(mutex_);
    later_.emplace_back(removal->directory, removal->unlinked);
  }
  end(removal, false);
}

void Removals::remove_data(const Shared& removal, const Inode& inode) {
  removal->version = inode.version;
  const auto objects = data_objects_of(inode);
  if (!objects) return end(removal, false);
  removal->objects_left = objects->size() + 1;
  const auto one_less = [this, removal](const Result<>& removed) {
    if (!removed) removal->has_failed = true;
    if (removal->objects_left.fetch_sub(1) == 1) remove_inode(removal);
  };
  for (const auto& object : *objects) instance_.store().remove_data(object, one_less);
  one_less({});
}

void Removals::remove_inode(const Shared& removal) {
  if (removal->has_failed) return end(removal, false);
  auto step = txn::remove_own_inode(removal->unlinked.ino, removal->version);
  instance_.unstored().beneath().apply_async(
      std::move(step), [this, removal](const Result<Applied>& applied) { end(removal, applied.has_value()); });
}

void Removals::end(const Shared& removal, bool is_removed) {
  const auto ino = removal->unlinked.ino;
  instance_.unstored().show(ino);
  std::vector<std::string> keys;
  {
    const Lock lock(mutex_);
    --running_;
    auto& removed = keys_[removal->directory];
    if (is_removed) removed.push_back(format::detached_key(ino, removal->unlinked.token));
    if (removed.size() >= keys_at_once || !waiting_.contains(removal->directory)) {
      keys = std::move(removed);
      keys_.erase(removal->directory);
    }
  }
  removal->unlinked.kept = nullptr;
  if (!keys.empty()) remove_keys(removal->directory, keys);
  begin_some();
  in_flight_.leave();
}

/// Where it fails, a collector finds keys of inodes that are gone.
void Removals::remove_keys(Ino directory, const std::vector<std::string>& keys) {
  in_flight_.enter();
  instance_.store().apply_async(txn::remove_traces(directory, keys),
                                [this](const Result<Applied>&) { in_flight_.leave(); });
}

}  // namespace lccfs
