// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/locks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "format/object_names.h"

namespace lccfs {

using format::Question;
using What = FileLocks::Tried::What;

namespace {
/// A request that may not wait waits so long for another client's answer.
constexpr std::chrono::seconds answer_wait{3};
/// The same of one that outlasts silence: more than it takes to fence a client that is dead.
constexpr std::chrono::seconds fence_wait{180};
/// A client that has answered is known to live, and is not asked again, for so long.
constexpr std::chrono::seconds heard_lately{1};
constexpr std::chrono::seconds look_after_every{60};
/// Of interrupts: most of those that find nothing have come too late.
constexpr std::size_t most_remembered = 1024;

LockHeld as_held(const Result<FileLocks::Tried>& tried) {
  const auto& lock = tried->blocking;
  return {lock.type, lock.first, lock.last, tried->what == What::blocked_here ? lock.pid : 0};
}
}  // namespace

// ---- requests

void Locks::set(const LockRequest& request, FileSystem::LockDone done) { begin(request, std::move(done)); }

void Locks::find(const LockRequest& request, FileSystem::FindLockDone done) { begin(request, std::move(done)); }

void Locks::begin(const LockRequest& request, Done done) {
  auto handle = files_.handle(request.handle);
  auto wait = std::make_shared<Wait>(request, std::move(done), Use(files_, handle ? std::move(handle->node) : nullptr));
  if (!wait->node) return finish(wait, failure(ErrorCode::bad_handle, "not an open file"));
  wait->outlasts_silence = (handle->flags & O_DIRECT) != 0;
  wait->began = instance_.clock().elapsed();
  const bool only_asks = wait->only_asks();
  const bool is_late = request.type != LockType::none && !only_asks && wanted_.gives_way(wait->node->ino);
  if (!only_asks && !is_late && may_be_at_once(wait) && wait->node->locks.set_at_once(request)) {
    if (request.type != LockType::exclusive) dropped(wait->node->ino);
    return finish(wait, std::nullopt);
  }
  if (request.type == LockType::none && !only_asks) return tasks_.post([this, wait] { unlock(wait); });
  if (!begin_wait(wait)) return finish(wait, std::unexpected(waited_in_vain()));
  tasks_.post([this, wait, is_late] {
    if (is_late) instance_.clock().sleep_for(WantedLocks::head_start);
    try_until_it_waits(wait);
  });
}

/// false: what is to end it has come before, and has not found it.
bool Locks::begin_wait(const WaitRef& wait) {
  const Lock lock(mutex_);
  if (all_end_ || interrupted_early_.erase(wait->request.ticket) != 0) return false;
  waits_.push_back(wait);
  return true;
}

void Locks::unlock(const WaitRef& wait) {
  const auto done = drop_of(*wait->node, [&wait](LockTable& table) { table.set(wait->request); });
  if (!done) return finish(wait, std::unexpected(done.error()));
  finish(wait, std::nullopt);
}

/// Interrupted only where a signal has come: without one the kernel tells programs an errno of its own, 512.
Error Locks::waited_in_vain() const {
  return {all_end_ ? ErrorCode::io : ErrorCode::interrupted, "a lock that was waited for"};
}

void Locks::finish(const WaitRef& wait, Result<std::optional<LockHeld>> result) {
  static_cast<void>(answer(wait, std::move(result)));
}

bool Locks::answer(const WaitRef& wait, Result<std::optional<LockHeld>> result) {
  {
    const Lock lock(mutex_);
    if (std::exchange(wait->is_answered, true)) return false;
    waits_.remove(wait);
    if (result) looks_.remove(wait);
  }
  if (auto* set = std::get_if<FileSystem::LockDone>(&wait->done)) {
    (*set)(result ? Result<>{} : std::unexpected(std::move(result).error()));
  } else {
    std::get<FileSystem::FindLockDone>(wait->done)(std::move(result));
  }
  return true;
}

/// Tried again where it was woken meanwhile: what has changed may have come after the look.
void Locks::try_until_it_waits(const WaitRef& wait) {
  while (begin_try(wait)) {
    if (!is_in_vain(wait)) return;
    const Lock lock(mutex_);
    if (wait->is_woken || wait->is_answered) continue;
    wait->is_tried = false;
    return;
  }
}

/// false: it was interrupted.
bool Locks::begin_try(const WaitRef& wait) {
  const Lock lock(mutex_);
  wait->is_woken = false;
  wait->blocked_by.reset();
  return !wait->is_answered;
}

bool Locks::is_in_vain(const WaitRef& wait) {
  const bool only_asks = wait->only_asks();
  if (!only_asks && !begin_look(wait)) return must_wait_for_look(wait);
  auto& locks = wait->node->locks;
  auto tried = only_asks ? locks.find(wait->request, expired_)
                         : locks.lock(wait->request, expired_, !wanted_.has(wait->node->ino));
  const bool is_granted = tried && tried->what == What::granted;
  if (!only_asks && !is_granted) look_has_ended(wait);
  if (tried && tried->dropped_some) dropped(wait->node->ino);
  if (!tried) {
    finish(wait, std::unexpected(std::move(tried).error()));
    return false;
  }
  if (!is_granted) return must_wait(wait, *tried);
  granted(wait, *tried);
  return false;
}

bool Locks::may_be_at_once(const WaitRef& wait) {
  const Lock lock(mutex_);
  return !is_being_looked_for(wait);
}

bool Locks::begin_look(const WaitRef& wait) {
  const Lock lock(mutex_);
  wait->waits_for_look = is_being_looked_for(wait);
  if (!wait->waits_for_look) looks_.push_back(wait);
  return !wait->waits_for_look;
}

bool Locks::is_being_looked_for(const WaitRef& wait) const {
  const auto& wanted = wait->request;
  return std::ranges::any_of(looks_, [&](const auto& other) {
    const auto& looked = other->request;
    return other != wait && other->node == wait->node && looked.kind == wanted.kind && looked.owner == wanted.owner &&
           looked.first <= wanted.last && wanted.first <= looked.last;
  });
}

bool Locks::must_wait_for_look(const WaitRef& wait) {
  const auto now = instance_.clock().elapsed();
  if (!wait->request.waits && !wait->give_up_at) wait->give_up_at = now + answer_wait;
  const bool is_late = wait->give_up_at && now >= *wait->give_up_at;
  if (is_late) finish(wait, failure(ErrorCode::would_block, format::inode_object(wait->node->ino)));
  return !is_late;
}

/// Wakes nobody else: two that are blocked by a third would wake each other for ever.
void Locks::look_has_ended(const WaitRef& wait) {
  {
    const Lock lock(mutex_);
    looks_.remove(wait);
  }
  wake_where([&wait](const Wait& other) { return other.waits_for_look && other.node == wait->node; });
}

void Locks::granted(const WaitRef& wait, const Tried& tried) {
  if (wait->request.type == LockType::shared && !wait->only_asks())
    dropped(wait->node->ino);  // it may have been exclusive
  if (tried.by != InstanceId{}) look_after(tried.by, wait->node);
  if (wait->only_asks()) return finish(wait, std::nullopt);
  if (tried.came == 0) return granted_at_last(wait, tried);
  std::uint64_t number = 0;
  {
    const Lock lock(mutex_);
    wait->is_refreshing = true;
    if (!wait->request.waits) look_must_end(*wait);
    number = ++last_refresh_;
    refreshes_[wait->node->ino].insert(number);
  }
  tasks_.post([this, wait, tried, number] { refresh(wait, tried, number); });
}

void Locks::look_must_end(Wait& wait) {
  const auto soonest = instance_.clock().elapsed() + answer_wait;
  if (wait.outlasts_silence) {
    wait.give_up_at = std::max(soonest, wait.began + fence_wait);
  } else if (!wait.give_up_at) {
    wait.give_up_at = soonest;
  }
}

/// Who was interrupted meanwhile has no lock, unless he had one before.
void Locks::granted_at_last(const WaitRef& wait, const Tried& tried) {
  const bool is_told = answer(wait, std::nullopt);
  if (!is_told) take_back(wait, tried);
  look_has_ended(wait);
}

void Locks::take_back(const WaitRef& wait, const Tried& granted) {
  if (granted.owner_had_some) return;
  auto undone = wait->request;
  undone.type = LockType::none;
  static_cast<void>(drop_of(*wait->node, [&undone](LockTable& table) { table.set(undone); }));
}

/// Of those that have begun by now. Their drops would take from a program that reads under this lock the size that its
/// kernel is just asking for (docs/LOCKS.md section 6).
void Locks::wait_for_others_of(Ino ino, std::uint64_t number) {
  Lock lock(mutex_);
  const auto mine = refreshes_.find(ino);
  mine->second.erase(number);
  if (mine->second.empty()) refreshes_.erase(mine);
  refreshed_.notify_all();
  lock.wait(refreshed_, [this, ino, last = last_refresh_]() REQUIRES(mutex_) {
    const auto others = refreshes_.find(ino);
    return others == refreshes_.end() || *others->second.begin() > last;
  });
}

/// What others have done under their locks has to be seen under this one. This may have to wait for the client that
/// writes the file: a caller that does not wait so long has no lock, unless it had one before.
void Locks::refresh(const WaitRef& wait, const Tried& granted, std::uint64_t number) {
  auto done = refresh_(*wait->node, stop_.get_token());
  wait_for_others_of(wait->node->ino, number);
  if (done) wait->node->locks.refreshed(granted.came);
  if (done) return granted_at_last(wait, granted);
  take_back(wait, granted);
  finish(wait, std::unexpected(std::move(done).error()));
  look_has_ended(wait);
}

/// Its locks are in nobody's way, and cost each of ours a look at the file: when it is gone, they go.
void Locks::look_after(InstanceId other, const Use& node) {
  if (!was_heard_within(look_after_every, other)) pursue(other, node, Ask::unless_lately);
}

bool Locks::was_heard_within(std::chrono::nanoseconds span, InstanceId other) {
  const Lock lock(mutex_);
  const auto heard = heard_.find(other);
  return heard != heard_.end() && instance_.clock().elapsed() - heard->second < span;
}

/// F_GETLK tells what is in the way; of a client that cannot be asked, nobody knows.
void Locks::refuse(const WaitRef& wait, const Tried& tried) {
  if (wait->only_asks() && tried.what != What::leased_by_other) return finish(wait, as_held(tried));
  finish(wait, failure(ErrorCode::would_block, format::inode_object(wait->node->ino)));
}

// ---- what is in the way

/// false: it was answered.
bool Locks::must_wait(const WaitRef& wait, const Tried& tried) {
  return tried.what == What::blocked_here ? must_wait_here(wait, tried) : must_wait_for_other(wait, tried);
}

bool Locks::must_wait_here(const WaitRef& wait, const Tried& tried) {
  if (!wait->request.waits) {
    refuse(wait, tried);
    return false;
  }
  if (wait->request.kind == LockKind::flock) return true;
  {
    const Lock lock(mutex_);
    if (wait->is_woken) return true;  // it is tried again: what is in the way may have gone
    if (!would_wait_for_itself(wait->request.owner, tried.blocking.owner)) {
      wait->blocked_by = tried.blocking.owner;
      return true;
    }
  }
  finish(wait, failure(ErrorCode::deadlock, format::inode_object(wait->node->ino)));
  return false;
}

bool Locks::would_wait_for_itself(std::uint64_t owner, std::uint64_t blocking) const {
  std::set<std::uint64_t> seen;
  std::vector<std::uint64_t> to_follow{blocking};
  while (!to_follow.empty()) {
    const auto next = to_follow.back();
    to_follow.pop_back();
    if (next == owner) return true;
    if (!seen.insert(next).second) continue;
    for (const auto& wait : waits_) {
      if (wait->blocked_by && wait->request.owner == next) to_follow.push_back(*wait->blocked_by);
    }
  }
  return false;
}

bool Locks::must_wait_for_other(const WaitRef& wait, const Tried& tried) {
  const auto now = instance_.clock().elapsed();
  if (wait->request.waits) {
    pursue(tried.by, wait->node, tried.what == What::leased_by_other ? Ask::now : Ask::to_be_told);
    return true;
  }
  if (must_outlast(wait, tried)) {
    pursue(tried.by, wait->node, Ask::now);
    wait->give_up_at = now + answer_wait;
    return true;
  }
  if (!wait->give_up_at) wait->give_up_at = now + answer_wait;
  const bool lives = tried.what == What::blocked_there && was_heard_within(heard_lately, tried.by);
  if (!lives && now < *wait->give_up_at) {
    const auto pursuit =
        pursue(tried.by, wait->node, tried.what == What::leased_by_other ? Ask::now : Ask::unless_lately);
    if (now - pursuit.began < answer_wait) return true;
  }
  refuse(wait, tried);
  return false;
}

/// QEMU asks once for a disk's locks, and gives the start up if it has none. Not so where bytes are written through pages:
/// Nova polls its lock files, and stands still until it is told. A lock that is there is in the way if its owner lives,
/// whatever it has answered; of a lease it has to say what is there.
bool Locks::must_outlast(const WaitRef& wait, const Tried& tried) {
  if (!wait->outlasts_silence || instance_.clock().elapsed() - wait->began >= fence_wait) return false;
  const Lock lock(mutex_);
  if (tried.what == What::leased_by_other) return !wait->heard.contains(tried.by);
  const auto heard = heard_.find(tried.by);
  return heard == heard_.end() || heard->second < wait->began;
}

Locks::Pursuit Locks::pursue(InstanceId other, const Use& node, Ask ask) {
  const auto now = instance_.clock().elapsed();
  {
    const Lock lock(mutex_);
    std::erase_if(pursuits_, [now](const auto& one) {
      return !one.second.is_under_way && now - one.second.ended.value_or(now) >= heard_lately;
    });
    auto& pursuit = pursuits_[{other, node->ino}];
    const bool was_lately = pursuit.ended.has_value();
    const bool is_enough =
        ask == Ask::unless_lately || (ask == Ask::to_be_told && pursuit.is_told) || pursuit.has_failed;
    if (pursuit.is_under_way || (was_lately && is_enough)) return pursuit;
    pursuit = {.is_under_way = true, .began = now};
  }
  tasks_.post([this, other, node = Use(node)] { pursue_now(other, *node); });
  return {.is_under_way = true, .began = now};
}

void Locks::pursue_now(InstanceId other, FileNode& node) {
  Question question{Question::Kind::share_locks, node.ino};
  question.asker = instance_.id();
  bool may_be_in_the_way = true;  // else it has not answered: another client may have fenced it
  const auto is_in_the_way = [&]() -> Result<bool> {
    may_be_in_the_way = false;
    if (stop_.stop_requested()) return false;
    LCCFS_TRY(may_be_in_the_way, node.locks.is_used_by(other));
    return may_be_in_the_way;
  };
  const auto holder = settle_holder(instance_, other, question, is_in_the_way);
  const bool has_expired = holder && *holder == LeaseHolders::Holder::expired && !instance_.read_only();
  if (has_expired) expired_.add(other);
  {
    const Lock lock(mutex_);
    auto& pursuit = pursuits_[{other, node.ino}];
    pursuit.is_under_way = false;
    pursuit.ended = instance_.clock().elapsed();
    pursuit.has_failed = !holder;
    pursuit.is_told = holder && !has_expired && may_be_in_the_way;
    if (pursuit.is_told) was_heard(other, node);
  }
  wake(node.ino);
}

void Locks::was_heard(InstanceId other, const FileNode& node) {
  heard_[other] = instance_.clock().elapsed();
  for (const auto& wait : waits_) {
    if (wait->node->ino == node.ino) wait->heard.insert(other);
  }
}

// ---- what ends a wait

void Locks::wake(Ino ino) {
  wake_where([ino](const Wait& wait) { return ino == everywhere || wait.node->ino == ino; });
}

void Locks::wake_where(const std::function<bool(const Wait&)>& which) {
  std::map<Ino, std::vector<WaitRef>> to_try;
  {
    const Lock lock(mutex_);
    for (const auto& wait : waits_) {
      if (!which(*wait)) continue;
      wait->is_woken = true;
      if (!std::exchange(wait->is_tried, true)) to_try[wait->node->ino].push_back(wait);
    }
  }
  for (auto& [file, waits] : to_try) {
    tasks_.post([this, waits = std::move(waits)] {
      for (const auto& wait : waits) try_until_it_waits(wait);
    });
  }
}

/// Locks of this file have gone: there, and here, somebody may have waited for it. Who is in whose way is seen anew.
void Locks::dropped(Ino ino) {
  {
    const Lock lock(mutex_);
    for (const auto& wait : waits_) {
      if (wait->node->ino == ino) wait->blocked_by.reset();
    }
  }
  if (!wanted_.dropped(ino)) return wake(ino);
  tasks_.post([this, ino] {
    instance_.clock().sleep_for(WantedLocks::head_start);
    wake(ino);
  });
}

bool Locks::changed(Ino ino, InstanceId there) {
  wake(ino);
  const Lock lock(mutex_);
  const auto is_for_it = [ino](const auto& wait) { return wait->request.waits && wait->node->ino == ino; };
  if (std::ranges::any_of(waits_, is_for_it)) return true;
  const auto pursuit = pursuits_.find({there, ino});
  if (pursuit != pursuits_.end()) pursuit->second.is_told = false;
  return false;
}

Result<> Locks::drop_of(FileNode& node, const std::function<void(LockTable&)>& what) {
  LCCFS_TRY(const bool had_some, node.locks.drop(what));
  if (had_some) dropped(node.ino);
  return {};
}

void Locks::drop_range_locks(HandleId handle, std::uint64_t owner) {
  const auto open = files_.handle(handle);
  if (!open) return;
  static_cast<void>(drop_of(*open->node, [owner](LockTable& table) { table.drop_range_locks(owner); }));
}

void Locks::disown(HandleId handle, std::optional<std::uint64_t> owner, std::uint64_t nobody) {
  const auto open = files_.handle(handle);
  if (!open) return;
  open->node->locks.disown(handle, owner, nobody);
  const Lock lock(mutex_);
  for (const auto& wait : waits_) {
    if (wait->node->ino == open->node->ino) wait->blocked_by.reset();  // by whom is seen with the next try
  }
}

void Locks::drop(HandleId handle) {
  const auto open = files_.handle(handle);
  if (!open) return;
  static_cast<void>(drop_of(*open->node, [handle](LockTable& table) { table.drop(handle); }));
}

/// A thread that tries one now, and gets the lock, takes it back.
void Locks::interrupt_where(const std::function<bool(const Wait&)>& which) {
  std::vector<WaitRef> mine;
  {
    const Lock lock(mutex_);
    for (const auto& wait : waits_) {
      if (which(*wait)) mine.push_back(wait);
    }
  }
  for (const auto& wait : mine) finish(wait, std::unexpected(waited_in_vain()));
}

/// The request may be on its way here, on another thread.
void Locks::interrupt(std::uint64_t ticket) {
  const auto is_it = [ticket](const Wait& wait) { return wait.request.ticket == ticket; };
  {
    const Lock lock(mutex_);
    if (std::ranges::none_of(waits_, [&is_it](const auto& wait) { return is_it(*wait); })) {
      interrupted_early_.insert(ticket);
      if (interrupted_early_.size() > most_remembered) interrupted_early_.erase(interrupted_early_.begin());
    }
  }
  interrupt_where(is_it);
}

void Locks::interrupt_all() {
  all_end_ = true;
  interrupt_where([](const Wait&) { return true; });
}

void Locks::tick() {
  const auto now = instance_.clock().elapsed();
  std::vector<WaitRef> late;
  {
    const Lock lock(mutex_);
    for (const auto& wait : waits_) {
      if (wait->is_refreshing && wait->give_up_at && now >= *wait->give_up_at) late.push_back(wait);
    }
  }
  for (const auto& wait : late) finish(wait, failure(ErrorCode::would_block, "the file's writer does not answer"));
  wake(everywhere);
}

void Locks::end() {
  stop_.request_stop();
  wanted_.end();
  interrupt_all();
  tasks_.wait();
}

}  // namespace lccfs
