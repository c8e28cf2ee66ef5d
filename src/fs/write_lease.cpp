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

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.h"
#include "format/layout.h"
#include "format/object_names.h"
#include "instance/steps_in_flight.h"

namespace lccfs {

using format::Question;

namespace {
/// Between two questions that were answered "busy": longer each time, because a holder that many ask answers so at once.
class BusyPause {
 public:
  std::chrono::nanoseconds next() {
    return std::exchange(next_, std::min<std::chrono::nanoseconds>(2 * next_, longest));
  }

 private:
  static constexpr std::chrono::milliseconds longest{500};
  std::chrono::nanoseconds next_ = std::chrono::milliseconds(20);
};
/// Of a question for attributes; of all that an answer about attributes waits for, asking again and looking included; and
/// how long a holder that did not answer is not asked again: `ls -l` of a thousand of its files waits once or twice.
constexpr std::chrono::seconds brief_time_out{2};
constexpr std::chrono::seconds brief_wait{3};
constexpr std::chrono::seconds silence_remembered_for{5};
/// The watch of a dead process stands for half a minute, and hears the question: if it was of this host, the look behind
/// a first short one shows it. Too short to tell anything of a holder that lives.
constexpr std::chrono::milliseconds first_time_out{1000};
/// A question takes ten seconds of silence.
constexpr ObservedSeries::Limits silence_limits{std::chrono::seconds(15), std::chrono::seconds(15)};

}  // namespace

/// Asks until the holder has answered "done", or is over. Silent is only who watches all the while: who does not hears
/// nothing, and is gone when it has been absent for long enough.
Result<WriteLease::Holder> WriteLease::settle_holder(InstanceId holder, const Question& question) {
  using Answer = Instance::AskResult;
  auto& clock = instance_.clock();
  ObservedSeries silence(silence_limits);
  BusyPause busy_pause;
  bool watches = false;
  for (std::chrono::milliseconds time_out = first_time_out;; time_out = answer_timeout) {
    const auto asked_at = clock.elapsed();
    LCCFS_TRY(const auto answer, instance_.ask(holder, question, time_out));
    if (answer == Answer::done) return Holder::answered;
    const bool silent = answer == Answer::silent || (answer == Answer::nobody && watches);
    if (!silent) silence.break_off();
    const bool silent_for_long =
        silent && time_out != first_time_out && silence.note(asked_at, clock.elapsed()) >= gone_after;
    if (answer != Answer::busy) {
      LCCFS_TRY(const auto seen, instance_.look_at(holder));
      // A read-only mount fences nobody: it answers what is stored.
      if (seen == Instance::Seen::over || instance_.read_only()) return Holder::over;
      watches = seen == Instance::Seen::watching;
    }
    if (silent_for_long) {
      LCCFS_CHECK(instance_.evict(holder));
      return Holder::over;
    }
    clock.sleep_for(answer == Answer::busy ? busy_pause.next() : look_again_after);
    // Only who holds it now is asked: what waits in the gate of one who does not may itself be waiting for us.
    LCCFS_TRY(const auto now, read_inode(instance_, question.ino));
    if (now.lease != holder) return Holder::answered;
  }
}

/// For an answer that may be what is stored: waits a little for a holder that is at work, and for one that says nothing.
Result<> WriteLease::ask_briefly(InstanceId holder, const Question& question) {
  auto& clock = instance_.clock();
  const auto give_up_at = clock.elapsed() + brief_wait;
  BusyPause busy_pause;
  while (!was_silent_just_now(holder)) {
    LCCFS_TRY(const auto heard, ask_for(give_up_at - clock.elapsed(), holder, question));
    if (heard == Heard::done || heard == Heard::over) return {};
    const auto pause = busy_pause.next();
    if (heard == Heard::nothing || clock.elapsed() + pause >= give_up_at) {
      note_silence(holder);
      return {};
    }
    clock.sleep_for(pause);
    LCCFS_TRY(const auto now, read_inode(instance_, question.ino));
    if (now.lease != holder) return {};
  }
  return {};
}

Result<WriteLease::Heard> WriteLease::ask_once_briefly(InstanceId holder, const Question& question) {
  using Answer = Instance::AskResult;
  LCCFS_TRY(const auto answer, instance_.ask(holder, question, brief_time_out));
  if (answer == Answer::done) return Heard::done;
  if (answer == Answer::busy) return Heard::busy;
  const auto seen = instance_.look_at(holder);  // a process of this host may be known to be dead
  if (!seen && seen.error().code == ErrorCode::fenced) return std::unexpected(seen.error());
  return seen && *seen == Instance::Seen::over ? Heard::over : Heard::nothing;
}

/// The question hangs with the object to which it is sent, and with the records, neither of which the asker may need: it
/// has a thread of its own, and only one such thread stays behind for each holder.
Result<WriteLease::Heard> WriteLease::ask_for(std::chrono::nanoseconds at_most, InstanceId holder,
                                              const Question& question) {
  struct Call {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result<Heard>> heard;
    bool was_left = false;
  };
  const auto call = std::make_shared<Call>();
  brief_questions_.post([this, call, holder, question] {
    auto heard = ask_once_briefly(holder, question);
    const std::lock_guard lock(call->mutex);
    if (call->was_left) {
      const std::lock_guard silent(silent_mutex_);
      still_asked_.erase(still_asked_.find(holder));
    }
    call->heard = std::move(heard);
    call->changed.notify_all();
  });
  std::unique_lock lock(call->mutex);
  const auto is_heard = [&] { return call->heard.has_value(); };
  if (instance_.clock().wait_for(call->changed, lock, at_most, is_heard)) return std::move(*call->heard);
  call->was_left = true;
  const std::lock_guard silent(silent_mutex_);
  still_asked_.insert(holder);
  return Heard::nothing;
}

bool WriteLease::was_silent_just_now(InstanceId holder) {
  const std::lock_guard lock(silent_mutex_);
  if (still_asked_.contains(holder)) return true;
  const auto found = silent_until_.find(holder);
  if (found == silent_until_.end()) return false;
  if (instance_.clock().elapsed() < found->second) return true;
  silent_until_.erase(found);
  return false;
}

void WriteLease::note_silence(InstanceId holder) {
  const std::lock_guard lock(silent_mutex_);
  silent_until_[holder] = instance_.clock().elapsed() + silence_remembered_for;
}

Result<InodeView> WriteLease::read_current(Ino ino, Ask ask) {
  using Map = InodeParts::Map;
  const InodeParts parts{.map = ask == Ask::for_opening ? Map::first_blocks : Map::whole};
  LCCFS_TRY(auto view, read_inode(instance_, ino, parts));
  if (ask != Ask::nobody && view.lease && *view.lease != instance_.id()) {
    const Question question{Question::Kind::store_attributes, ino, ask == Ask::for_opening};
    auto holder = Holder::answered;
    if (ask == Ask::for_attributes) {
      LCCFS_CHECK(ask_briefly(*view.lease, question));
    } else {
      LCCFS_TRY(holder, settle_holder(*view.lease, question));
    }
    const auto asked = *view.lease;
    LCCFS_TRY(view, read_inode(instance_, ino, parts));
    view.lease_is_over = holder == Holder::over && view.lease == asked;
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
    LCCFS_TRY(auto view, read_inode_and_map(instance_, node.ino));
    LCCFS_CHECK(instance_.see_fence(view.fence));
    // Ours, though memory does not say so: taken over just now, perhaps by a run of the step that seemed to fail.
    if (view.lease && *view.lease == instance_.id()) return adopt(node, std::move(view), Tail::unclean);
    if (!view.lease) {
      auto taken = instance_.run_repeatable(txn::take_lease(node.ino, instance_.id(), view.version));
      if (taken) {
        const auto since_version = std::exchange(view.version, taken->version);
        return adopt(node, std::move(view), Tail::clean, since_version);
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
  auto view = read_inode_and_map(instance_, node.ino);
  if (!view) return view.error().code == ErrorCode::not_found ? Result<>{} : std::unexpected(view.error());
  if (view->lease != instance_.id()) return {};
  return adopt(node, std::move(*view), Tail::unclean);
}

Result<> WriteLease::clean_up_behind(FileNode& node, InstanceId holder) {
  {
    const std::lock_guard lock(node.mutex);
    if (node.lease_held) return {};
  }
  auto taken =
      instance_.run_repeatable(txn::take_over_lease(node.ino, holder, instance_.id(), instance_.newest_fence()));
  if (!taken && taken.error().code == ErrorCode::not_found) return {};
  if (!taken && taken.error().code != ErrorCode::guard_failed) return std::unexpected(std::move(taken).error());
  LCCFS_TRY(auto view, read_inode_and_map(instance_, node.ino));
  if (view.lease != instance_.id()) return {};
  return adopt(node, std::move(view), Tail::unclean);
}

/// Nothing is answered from memory, and nothing written, before the tail is clean.
Result<> WriteLease::adopt(FileNode& node, InodeView view, Tail tail, std::uint64_t since_version) {
  const auto size_bytes = view.size_bytes;
  {
    const std::lock_guard lock(node.mutex);
    view.lease = instance_.id();
    node.take(std::move(view));
  }
  if (tail == Tail::unclean) LCCFS_CHECK(cut_data(node, size_bytes));
  kernel_.lease_taken(node.ino, since_version);
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
  return store_dirty_now(node, with_times);
}

Result<> WriteLease::store_dirty_now(FileNode& node, bool with_times) {
  txn::FileChanges changes;
  {
    const std::lock_guard lock(node.mutex);
    if (!node.needs_store(with_times)) return {};
    changes = node.take_dirty(with_times);
  }
  auto stored = change_leased(node, changes);
  const std::lock_guard lock(node.mutex);
  stored ? node.stored() : node.put_back(changes, instance_.clock().elapsed());
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
  kernel_.lease_given_back(node.ino, given ? given->version : 0);
  const std::lock_guard lock(node.mutex);
  node.stored();
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
    LCCFS_TRY(auto view, read_inode_and_map(instance_, ino));
    if (view.lease && *view.lease != instance_.id()) {
      LCCFS_TRY(const auto holder, settle_holder(*view.lease, {Question::Kind::give_back_lease, ino, false}));
      if (holder == Holder::answered) continue;
    }
    if (view.lease) return failure(ErrorCode::busy, "the lease is to be taken over first");
    const auto changes = change(view);
    LCCFS_TRY(const auto result, instance_.run(txn::change_unleased_file(ino, view.version, changes)));
    if (result.decided == Decided::refused) continue;
    kernel_.version_moved(ino, view.version, result.version);
    view.version = result.version;
    view.atime = changes.atime.value_or(view.atime);
    view.mtime = changes.mtime.value_or(view.mtime);
    view.wtime = changes.wtime.value_or(view.wtime);
    return view;
  }
}

}  // namespace lccfs
