// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/removals.h"

#include <atomic>
#include <set>
#include <utility>

#include "format/object_names.h"
#include "txn/reclaim_txn.h"

namespace lccfs {

namespace {
/// Beyond, they are left to collectors. (Some 50 bytes each.)
constexpr std::size_t most_removals_waiting = 100'000;
/// Others' work goes on beside it.
constexpr unsigned most_each_second = 1024, most_at_once = 4;
/// What has more takes long: a collector is better at that.
constexpr std::size_t most_data_objects = 64;
constexpr std::size_t keys_at_once = 64;
/// Of what is in use, one each second: an idle lease goes back after five (idle_leases.h), with the bytes.
constexpr unsigned most_tries = 10;

/// Devices, pipes and sockets may be open without a word to this client. A lease of ours that the store still shows is
/// void: nothing of the file is in use here.
bool may_be_removed(const Inode& inode, Ino directory, InstanceId me) {
  const auto type = inode.attr.type;
  const bool is_plain = inode.live() && !inode.sealed() && (type == FileType::regular || type == FileType::symlink);
  const bool has_one_name = inode.attr.nlink <= 1 && inode.parent && inode.parent->parent == directory &&
                            inode.extra_ranges.front().entries.empty();
  return is_plain && has_one_name && inode.lease.value_or(me) == me && inode.openers.empty();
}
}  // namespace

struct Removals::Removal {
  Unlinked unlinked;
  std::uint64_t version = 0;             // of the inode since it is dead
  std::set<std::uint64_t> objects = {};  // their indexes
  std::atomic<std::size_t> objects_left = 0;
  std::atomic<bool> has_failed = false;
};

/// How many have their data objects removed. Shared with the completions: those that come after the end find nothing else.
class Removals::DataPhases {
 public:
  /// false: too late.
  bool begin() {
    const Lock lock(mutex_);
    if (!has_ended_) ++count_;
    return !has_ended_;
  }
  /// false: it was left as it is.
  bool finish() {
    const Lock lock(mutex_);
    if (!has_ended_) --count_;
    return !has_ended_;
  }
  /// So many are left as they are.
  std::size_t end() {
    const Lock lock(mutex_);
    has_ended_ = true;
    return std::exchange(count_, 0);
  }

 private:
  Mutex mutex_;
  std::size_t count_ GUARDED_BY(mutex_) = 0;
  bool has_ended_ GUARDED_BY(mutex_) = false;
};

Removals::Removals(Instance& instance, IsInUse is_in_use)
    : instance_(instance), is_in_use_(std::move(is_in_use)), removing_data_(std::make_shared<DataPhases>()) {}

void Removals::add(const Unlinked& unlinked) {
  const Lock lock(mutex_);
  if (is_ended_ || how_many_wait_ == most_removals_waiting) return;
  waiting_[unlinked.directory].push_back(unlinked);
  ++how_many_wait_;
}

void Removals::leave(Ino directory) {
  std::vector<std::string> keys;
  {
    const Lock lock(mutex_);
    std::erase_if(later_, [directory](const Unlinked& one) { return one.directory == directory; });
    if (const auto left = waiting_.extract(directory)) how_many_wait_ -= left.mapped().size();
    if (auto removed = keys_.extract(directory)) keys = std::move(removed.mapped());
  }
  if (!keys.empty()) remove_keys(directory, keys);
}

void Removals::end() {
  {
    const Lock lock(mutex_);
    is_ended_ = true;
    waiting_.clear();
    how_many_wait_ = 0;
  }
  stop_.request_stop();
  for (auto left = removing_data_->end(); left > 0; --left) in_flight_.leave();
  in_flight_.wait();
}

void Removals::tick() {
  std::vector<Unlinked> again;
  {
    const Lock lock(mutex_);
    may_begin_ = most_each_second;
    again.swap(later_);
  }
  for (const auto& unlinked : again) add(unlinked);
  begin_some();
}

/// nullptr: none may begin.
Removals::Shared Removals::next() {
  if (waiting_.empty() || may_begin_ == 0 || running_ == most_at_once) return nullptr;
  const auto first = waiting_.begin();
  auto removal = std::make_shared<Removal>(first->second.front());
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

void Removals::begin(const Shared& removal) {
  const auto& [directory, ino, token, tries] = removal->unlinked;
  if (is_in_use_(ino)) return try_later(removal);
  const objects::InodeParts parts{
      .extra_ranges = {{"p/", "", 1}}, .map = objects::InodeParts::Map::whole, .openers = true};
  objects::read_inode_async(instance_.reader(stop_.get_token()), ino, parts,
                            [this, removal](const Result<Inode>& inode) {
                              if (!inode || !may_be_removed(*inode, removal->unlinked.directory, instance_.id()))
                                return end(removal, false);
                              mark_dead(removal, *inode);
                            });
}

void Removals::try_later(const Shared& removal) {
  if (++removal->unlinked.tries < most_tries) {
    const Lock lock(mutex_);
    later_.push_back(removal->unlinked);
  }
  end(removal, false);
}

/// Who opens it later finds it dead; who has begun to open it before has a node here.
void Removals::mark_dead(const Shared& removal, const Inode& inode) {
  if (inode.map.mapped() > most_data_objects) return end(removal, false);
  removal->objects = inode.map.mapped_from(ObjectIndex{0});
  instance_.store().apply_async(txn::mark_unnamed_dead(inode.ino, inode.version),
                                [this, removal](const Result<Applied>& applied) {
                                  if (!applied || is_in_use_(removal->unlinked.ino)) return end(removal, false);
                                  removal->version = applied->version;
                                  remove_data(removal);
                                });
}

/// The inode is dead, and keys lead a collector to it: so the end need not wait for its data.
void Removals::remove_data(const Shared& removal) {
  in_flight_.enter();  // the calls themselves
  if (removing_data_->begin()) {
    remove_objects(removal);
  } else {
    end(removal, false);
  }
  in_flight_.leave();
}

void Removals::remove_objects(const Shared& removal) {
  removal->objects_left = removal->objects.size() + 1;
  const auto one_less = [this, phases = removing_data_, removal](const Result<>& removed) {
    if (!removed) removal->has_failed = true;
    if (removal->objects_left.fetch_sub(1) == 1 && phases->finish()) remove_inode(removal);
  };
  for (const auto index : removal->objects) {
    instance_.store().remove_data(format::data_object(removal->unlinked.ino, ObjectIndex{index}), one_less);
  }
  one_less({});
}

void Removals::remove_inode(const Shared& removal) {
  if (removal->has_failed) return end(removal, false);
  instance_.store().apply_async(txn::remove_dead_inode(removal->unlinked.ino, removal->version),
                                [this, removal](const Result<Applied>& applied) { end(removal, applied.has_value()); });
}

void Removals::end(const Shared& removal, bool is_removed) {
  const auto& [directory, ino, token, tries] = removal->unlinked;
  std::vector<std::string> keys;
  {
    const Lock lock(mutex_);
    --running_;
    auto& removed = keys_[directory];
    if (is_removed) removed.push_back(format::detached_key(ino, token));
    if (removed.size() >= keys_at_once || !waiting_.contains(directory)) {
      keys = std::move(removed);
      keys_.erase(directory);
    }
  }
  if (!keys.empty()) remove_keys(directory, keys);
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
