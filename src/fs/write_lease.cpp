// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Every step guards "lease is mine", "lease is the old one" or the version: whoever finds a guard failed reads the
// inode.
//
//  take       | object   | step                                                   | stop here leaves
//  1          | Inode.X  | guard lease absent, version as read; lease = me        | a lease of one who will be over
//
//  take over  | object   | step                                                   | stop here leaves
//  0          | Super    | the old holder is over (fenced if gone); fences synced |
//  1          | Inode.X  | guard lease = old; lease = me, fence = the counter     | bytes past the size: 2 of the next
//  2          | Inode.X  | read size and map anew                                 | the same
//  3          | Data.X.* | cut the boundary object, remove mapped ones past it    | the same
//
//  give back  | object   | step                                                   | stop here leaves
//  1          | Inode.X  | guard lease = me; size, times, map; lease removed      | done
//
//  truncate   | object   | step                                                   | stop here leaves
//  1          | Inode.X  | guard lease = me; size, times: **commit**              | bytes past the size, and my lease
//  2          | Data.X.* | cut the boundary object, remove mapped ones past it    | the same: cut at the take-over
#include "fs/write_lease.h"

#include "base/log.h"
#include "format/layout.h"
#include "format/object_names.h"
#include "instance/steps_in_flight.h"

namespace lccfs {

using format::Question;

namespace {
constexpr std::chrono::milliseconds busy_pause{20};
constexpr std::chrono::seconds silence_limit{60};

}  // namespace

/// Asks until the holder has answered "done", or is over.
Result<WriteLease::Holder> WriteLease::settle_holder(InstanceId holder, const Question& question) {
  auto& clock = instance_.clock();
  constexpr auto not_silent = std::chrono::nanoseconds::max();
  auto silent_since = not_silent;
  for (;;) {
    LCCFS_TRY(const auto answer, instance_.ask(holder, question));
    if (answer == Instance::AskResult::done) return Holder::answered;
    if (answer == Instance::AskResult::silent) {
      LCCFS_TRY(const bool over, instance_.ensure_over(holder));
      // A read-only mount fences nobody: it answers what is stored.
      if (over || instance_.read_only()) return Holder::over;
      if (silent_since == not_silent) silent_since = clock.elapsed();
      if (clock.elapsed() - silent_since > silence_limit) {
        LCCFS_CHECK(instance_.evict(holder));
        return Holder::over;
      }
    } else {
      silent_since = not_silent;
    }
    clock.sleep_for(busy_pause);
    // Only who holds it now is asked: what waits in the gate of one who does not may itself be waiting for us.
    LCCFS_TRY(const auto now, read_inode(instance_, question.ino));
    if (now.lease != holder) return Holder::answered;
  }
}

Result<InodeView> WriteLease::read_current(Ino ino, bool ask, bool from_open) {
  LCCFS_TRY(auto view, read_inode(instance_, ino));
  if (ask && view.lease && *view.lease != instance_.id()) {
    LCCFS_CHECK(settle_holder(*view.lease, {Question::Kind::store_attributes, ino, from_open}));
    LCCFS_TRY(view, read_inode(instance_, ino));
  }
  LCCFS_CHECK(instance_.see_fence(view.fence));
  return view;
}

Result<> WriteLease::ensure(FileNode& node) {
  {
    const std::lock_guard lock(node.mutex);
    if (node.lease_held) return {};
  }
  for (bool again = false;; again = true) {
    if (again) instance_.clock().sleep_for(std::chrono::milliseconds(1));
    LCCFS_TRY(auto view, read_inode(instance_, node.ino));
    LCCFS_CHECK(instance_.see_fence(view.fence));
    // Ours, though memory does not say so: taken over just now, perhaps by a run of the step that seemed to fail.
    if (view.lease && *view.lease == instance_.id()) return adopt(node, std::move(view), Tail::unclean);
    if (!view.lease) {
      auto taken = instance_.run_repeatable(txn::take_lease(node.ino, instance_.id(), view.version));
      if (taken) {
        view.version = taken->version;
        return adopt(node, std::move(view), Tail::clean);
      }
      if (taken.error().code != ErrorCode::guard_failed) return std::unexpected(std::move(taken).error());
      continue;
    }
    LCCFS_TRY(const auto holder, settle_holder(*view.lease, {Question::Kind::give_back_lease, node.ino, false}));
    if (holder == Holder::over) {
      auto taken = instance_.run_repeatable(
          txn::take_over_lease(node.ino, *view.lease, instance_.id(), instance_.newest_fence()));
      if (!taken && taken.error().code != ErrorCode::guard_failed) return std::unexpected(std::move(taken).error());
    }
  }
}

Result<> WriteLease::find_own(FileNode& node) {
  const std::lock_guard one_step(node.lease_mutex);
  {
    const std::lock_guard lock(node.mutex);
    if (node.lease_held) return {};
  }
  auto view = read_inode(instance_, node.ino);
  if (!view) return view.error().code == ErrorCode::not_found ? Result<>{} : std::unexpected(view.error());
  if (view->lease != instance_.id()) return {};
  return adopt(node, std::move(*view), Tail::unclean);
}

/// Nothing is answered from memory, and nothing written, before the tail is clean.
Result<> WriteLease::adopt(FileNode& node, InodeView view, Tail tail) {
  const auto size_bytes = view.size_bytes;
  {
    const std::lock_guard lock(node.mutex);
    view.lease = instance_.id();
    if (node.view.ino == view.ino && node.view.ctime > view.ctime) {  // an own chmod came after that read
      view.attr = node.view.attr;
      view.attr_raw = node.view.attr_raw;
      view.ctime = node.view.ctime;
    }
    node.view = std::move(view);
  }
  if (tail == Tail::unclean) LCCFS_CHECK(cut_data(node, size_bytes));
  const std::lock_guard lock(node.mutex);
  node.lease_held = true;
  return {};
}

Result<> WriteLease::change_leased(FileNode& node, const txn::FileChanges& changes) {
  auto stored = instance_.run_repeatable(txn::change_leased_file(node.ino, instance_.id(), changes));
  if (stored) return {};
  if (stored.error().code == ErrorCode::guard_failed) {
    return failure(ErrorCode::fenced, format::inode_object(node.ino) + ": the lease was taken over by another client");
  }
  if (stored.error().code == ErrorCode::not_found) {
    return failure(ErrorCode::stale, format::inode_object(node.ino) + " is gone");
  }
  return std::unexpected(std::move(stored).error());
}

Result<> WriteLease::store_dirty(FileNode& node, bool with_times) {
  const std::lock_guard one_step(node.lease_mutex);
  txn::FileChanges changes;
  {
    const std::lock_guard lock(node.mutex);
    // Believed bits and a new size are what fdatasync needs to find the data again; times alone are not.
    if (!node.lease_held || !(node.size_dirty || !node.dirty_map_blocks.empty() || (with_times && node.times_dirty))) {
      return {};
    }
    changes = node.take_dirty(with_times);
  }
  auto stored = change_leased(node, changes);
  if (!stored) {
    const std::lock_guard lock(node.mutex);
    node.put_back(changes, instance_.clock().elapsed());
  }
  return stored;
}

Result<> WriteLease::give_back(FileNode& node) {
  const std::lock_guard one_step(node.lease_mutex);
  LCCFS_CHECK(clean_tail(node));
  txn::FileChanges changes;
  {
    const std::lock_guard lock(node.mutex);
    if (!node.lease_held) return {};
    changes = node.take_dirty(true);
  }
  auto given = instance_.run_repeatable(txn::give_back_lease(node.ino, instance_.id(), changes));
  // A guard that failed, or an object that is gone: an earlier run did it, or whoever took over fenced us first.
  if (!given && given.error().code != ErrorCode::guard_failed && given.error().code != ErrorCode::not_found) {
    const std::lock_guard lock(node.mutex);
    node.put_back(changes, instance_.clock().elapsed());
    return std::unexpected(std::move(given).error());
  }
  const std::lock_guard lock(node.mutex);
  node.lease_held = false;
  node.view.lease.reset();
  node.view.version = given ? given->version : 0;
  return {};
}

Result<> WriteLease::map_objects(FileNode& node, ObjectIndex first, std::uint64_t count, std::uint64_t ahead) {
  AllocationMap map;
  std::set<std::uint64_t> blocks;
  {
    const std::lock_guard lock(node.mutex);
    map = node.view.map;
  }
  for (std::uint64_t i = first.value; i < first.value + count + ahead; ++i) {
    if (!map.may_exist(ObjectIndex{i})) blocks.insert(i / format::MapBlock::objects);
    map.set_may_exist(ObjectIndex{i});
    if (i < first.value + count) map.set_believed_there(ObjectIndex{i}, true);
  }
  txn::FileChanges changes;
  for (const auto block : blocks) changes.map_blocks[block] = map.blocks().at(block);
  if (!changes.map_blocks.empty()) LCCFS_CHECK(change_leased(node, changes));
  const std::lock_guard lock(node.mutex);
  for (std::uint64_t i = first.value; i < first.value + count + ahead; ++i) {
    node.view.map.set_may_exist(ObjectIndex{i});
    if (i < first.value + count) node.view.map.set_believed_there(ObjectIndex{i}, true);
  }
  return {};
}

Result<> WriteLease::cut_data(FileNode& node, std::uint64_t size_bytes) {
  const auto object_size = instance_.super().object_size_bytes;
  const auto kept = format::object_count(object_size, size_bytes);
  const auto boundary_bytes = size_bytes % object_size;
  std::set<std::uint64_t> beyond;
  bool boundary_mapped = false;
  {
    const std::lock_guard lock(node.mutex);
    beyond = node.view.map.mapped_from(ObjectIndex{kept});
    boundary_mapped = boundary_bytes != 0 && node.view.map.may_exist(ObjectIndex{kept - 1});
  }
  StepsInFlight steps;
  auto& store = instance_.store();
  if (boundary_mapped) {
    store.truncate_data(format::data_object(node.ino, ObjectIndex{kept - 1}), boundary_bytes, steps.next());
  }
  for (const auto index : beyond) store.remove_data(format::data_object(node.ino, ObjectIndex{index}), steps.next());
  LCCFS_CHECK(steps.wait());
  const std::lock_guard lock(node.mutex);
  for (const auto index : beyond) {
    if (!node.view.map.believed_there(ObjectIndex{index})) continue;
    node.view.map.set_believed_there(ObjectIndex{index}, false);
    node.dirty_map_blocks.insert(index / format::MapBlock::objects);
  }
  node.tail_is_dirty = false;
  return {};
}

Result<> WriteLease::clean_tail(FileNode& node) {
  std::uint64_t size_bytes = 0;
  {
    const std::lock_guard lock(node.mutex);
    if (!node.tail_is_dirty) return {};
    size_bytes = node.view.size_bytes;
  }
  return cut_data(node, size_bytes);
}

Result<InodeView> WriteLease::change_unleased(Ino ino,
                                              const std::function<txn::FileChanges(const InodeView&)>& change) {
  for (;;) {
    LCCFS_TRY(auto view, read_inode(instance_, ino));
    if (view.lease && *view.lease != instance_.id()) {
      LCCFS_TRY(const auto holder, settle_holder(*view.lease, {Question::Kind::give_back_lease, ino, false}));
      if (holder == Holder::answered) continue;
    }
    if (view.lease) return failure(ErrorCode::busy, "the lease is to be taken over first");
    const auto changes = change(view);
    LCCFS_TRY(const auto result, instance_.run(txn::change_unleased_file(ino, view.version, changes)));
    if (result.decided == Decided::refused) continue;
    view.version = result.version;
    view.atime = changes.atime.value_or(view.atime);
    view.mtime = changes.mtime.value_or(view.mtime);
    view.wtime = changes.wtime.value_or(view.wtime);
    return view;
  }
}

}  // namespace lccfs
