// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Each step guards a whole value that never comes back. If a guard fails, the inode is read: it tells whether the step
// was applied.
//
//  lock           | object  | step                                                    | stop here leaves
//  1 (alone)      | Inode.X | [lease locks] guard `locks` as read; `locks` =          | a lease without locks, until I
//                 |         | leased(me, n); remove own key and those of expired ones | am expired, or share it
//  1 (others)     | Inode.X | [lock] guard `locks` as known; `locks` = shared(me, n), | my lock, until I am expired
//                 |         | own key = my locks with the new one; remove those of    |
//                 |         | expired instances                                       |
//
//  unlock         | object  | step                                                    | stop here leaves
//  1              | Inode.X | [unlock] guard own key as written; own key = what is    | my lock, until I am expired, or
//                 |         | left, or none                                           | another asks me
//
//  share          | object  | step                                                    | stop here leaves
//  1              | Inode.X | [share locks] guard `locks` = leased(me); `locks` =     | my locks, as they were in memory
//                 |         | shared(me, n), own key = my locks, or none              |
#include "fs/file_locks.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "format/object_names.h"

namespace lccfs {

using format::LocksRecord;
using format::LockStateRecord;
using What = FileLocks::Tried::What;

namespace {
/// So many own locks, with nobody else in between, show that this client is the only one.
constexpr unsigned lease_after = 16;

LockRequest as_request(const LocksRecord::Lock& lock) {
  LockRequest request;
  request.kind = lock.is_flock ? LockKind::flock : LockKind::range;
  request.type = lock.is_exclusive ? LockType::exclusive : LockType::shared;
  request.first = lock.first;
  request.last = lock.last;
  return request;
}

/// The own key's value; empty: none.
Bytes as_stored(const LocksRecord& own) { return own.locks.empty() ? Bytes() : encode(own); }
}  // namespace

bool FileLocks::are_local() const { return instance_.read_only() || !instance_.super().has(format::feature::locks); }

bool FileLocks::is_leased() const {
  return decoded_ && decoded_->kind == LockStateRecord::Kind::leased && decoded_->token.instance == instance_.id();
}

/// A lease that is found to be ours is ours: memory that knows of no locks has none, because a file is remembered here
/// as long as it is open.
Result<> FileLocks::learn() {
  state_.reset();
  decoded_.reset();
  MetaRead read{.object = format::inode_object(ino_), .xattrs = true, .ranges = {{"k/", "", objects::keys_at_once}}};
  LCCFS_TRY(const auto object, or_stale(objects::read_object(instance_.reader(), std::move(read), 1)));
  LCCFS_TRY(auto decoded, object.optional<LockStateRecord>(format::xattr::locks));
  std::map<InstanceId, LocksRecord> others;
  Bytes stored;
  for (const auto& [key, value] : object.ranges.front().entries) {
    const auto client = format::parse_locks_key(key);
    if (!client) return failure(ErrorCode::corrupt, object.name + ": key " + key + " is unknown to the format");
    LCCFS_TRY(auto locks, objects::decode_part<LocksRecord>(object.name, key, value));
    if (*client == instance_.id()) {
      stored = value;
    } else {
      others[*client] = std::move(locks);
    }
  }
  const bool is_anothers = decoded && decoded->token.instance != instance_.id();
  if (is_anothers) own_in_a_row_ = 0;
  if (!others_.empty() || !others.empty() || is_anothers) ++came_;
  state_ = decoded ? object.xattrs.at(format::xattr::locks) : Bytes();
  decoded_ = decoded;
  others_ = std::move(others);
  stored_ = std::move(stored);
  return {};
}

/// As far as is known.
std::optional<FileLocks::Tried> FileLocks::in_the_way(const LockRequest& wanted,
                                                      const ExpiredInstances& expired) const {
  if (decoded_ && decoded_->kind == LockStateRecord::Kind::leased) {
    const auto holder = decoded_->token.instance;
    if (holder == instance_.id() || expired.contains(holder)) return std::nullopt;
    return Tried{.what = What::leased_by_other, .by = holder};
  }
  for (const auto& [client, locks] : others_) {
    const auto* blocking = conflict(locks, wanted);
    if (blocking == nullptr || expired.contains(client)) continue;
    return Tried{.what = What::blocked_there, .blocking = as_request(*blocking), .by = client};
  }
  return std::nullopt;
}

std::vector<std::string> FileLocks::void_keys(const ExpiredInstances& expired) const {
  std::vector<std::string> keys;
  for (const auto& [client, locks] : others_) {
    if (expired.contains(client)) keys.push_back(format::locks_key(client));
  }
  return keys;
}

bool FileLocks::is_alone(const ExpiredInstances& expired) const {
  for (const auto& [client, locks] : others_) {
    if (!expired.contains(client)) return false;
  }
  return !decoded_ || decoded_->kind == LockStateRecord::Kind::leased || own_in_a_row_ >= lease_after;
}

/// false: a guard did not hold, at least in the last run. After an error an earlier run may have been applied: nothing
/// is known then.
Result<bool> FileLocks::applied(MetaTxn txn) {
  auto done = instance_.run_repeatable(std::move(txn));
  if (done) return true;
  if (done.error().code == ErrorCode::guard_failed) return false;
  state_.reset();
  decoded_.reset();
  if (is_out_of_space(done.error())) {
    return failure(ErrorCode::no_locks, format::inode_object(ino_) + ": " + done.error().context);
  }
  return std::unexpected(gone_is_stale(std::move(done).error()));
}

/// An own step has left it so.
void FileLocks::now(LockStateRecord state, Bytes stored) {
  state_ = encode(state);
  decoded_ = state;
  stored_ = std::move(stored);
}

/// With their keys. What they have done under their locks up to their fence has to be seen, once more and for the last
/// time.
void FileLocks::forget_dead(const ExpiredInstances& expired) {
  const auto is_dead = [&expired](const auto& other) { return expired.contains(other.first); };
  if (std::erase_if(others_, is_dead) != 0) ++came_;
}

Result<bool> FileLocks::lease(const ExpiredInstances& expired) {
  const LockStateRecord leased{LockStateRecord::Kind::leased, instance_.next_token()};
  LCCFS_TRY(const bool done, applied(txn::lease_locks(ino_, leased.token, *state_, void_keys(expired))));
  if (!done) {
    LCCFS_CHECK(learn());
    return decoded_ == leased;
  }
  forget_dead(expired);
  now(leased, {});
  return true;
}

Result<bool> FileLocks::store_lock(const LockRequest& wanted, const ExpiredInstances& expired) {
  auto with_it = table_, less = table_;
  with_it.set(wanted);
  if (wanted.type == LockType::shared) less.lessen(wanted);
  if (!stored_.empty() && with_it.stored() == less.stored()) return store_less(std::move(less));
  auto stored = store_more(with_it.stored(), expired);
  // It may have been applied: memory has no more than the store.
  if (!stored) table_ = std::move(less);
  return stored;
}

/// No lock but an unlock: nobody else has to be looked at.
Result<bool> FileLocks::store_less(LockTable less) {
  table_ = std::move(less);
  LCCFS_CHECK(store_what_is_left());
  return state_ && !is_leased() && !stored_.empty();
}

Result<bool> FileLocks::store_more(std::vector<LocksRecord::Lock> locks, const ExpiredInstances& expired) {
  const LockStateRecord shared{LockStateRecord::Kind::shared, instance_.next_token()};
  const LocksRecord own{shared.token.number, std::move(locks)};
  const bool follows_own = decoded_ && decoded_->token.instance == instance_.id();
  LCCFS_TRY(const bool done, applied(txn::lock(ino_, shared.token, *state_, own.locks, void_keys(expired))));
  if (!done) {
    LCCFS_CHECK(learn());
    return stored_ == encode(own);
  }
  forget_dead(expired);
  own_in_a_row_ = follows_own && others_.empty() ? own_in_a_row_ + 1 : 0;
  now(shared, encode(own));
  return true;
}

bool FileLocks::has_room_for(const LockRequest& wanted) const {
  if (table_.size() + 2 <= LocksRecord::most) return true;  // a lock within another makes three of it
  auto with_it = table_;
  with_it.set(wanted);
  return with_it.size() <= std::max<std::size_t>(table_.size(), LocksRecord::most);
}

FileLocks::Tried FileLocks::granted(const LockRequest& wanted) {
  Tried tried;
  tried.owner_had_some = table_.own(wanted) != nullptr;
  const bool lets_go = wanted.type == LockType::shared && table_.covers(wanted);  // nothing to be seen is added
  table_.set(wanted);
  is_held_ = !table_.empty();
  if (!others_.empty()) tried.by = others_.begin()->first;
  if (!lets_go && (came_ != seen_ || !others_.empty())) tried.came = came_;
  return tried;
}

void FileLocks::refreshed(std::uint64_t came) {
  const Lock lock(mutex_);
  seen_ = std::max(seen_, came);
}

Result<FileLocks::Tried> FileLocks::lock(const LockRequest& wanted, const ExpiredInstances& expired, bool may_lease) {
  const Lock lock(mutex_);
  is_used_ = true;
  LCCFS_TRY(auto tried, lock_now(wanted, expired, may_lease));
  const auto* own = table_.own(wanted);
  if (tried.what == What::granted || wanted.kind == LockKind::range || own == nullptr) return tried;
  // Two that have a shared flock and want it exclusive would else wait for each other.
  if (own->type != wanted.type) {
    auto none = wanted;
    none.type = LockType::none;
    table_.set(none);
    is_held_ = !table_.empty();
    tried.dropped_some = true;
    static_cast<void>(store_what_is_left());
  }
  return tried;
}

Result<FileLocks::Tried> FileLocks::lock_now(const LockRequest& wanted, const ExpiredInstances& expired,
                                             bool may_lease) {
  LCCFS_CHECK(instance_.check_not_fenced());
  if (const auto* held = table_.conflict(wanted)) return Tried{.what = What::blocked_here, .blocking = *held};
  if (!has_room_for(wanted)) return failure(ErrorCode::no_locks, format::inode_object(ino_) + ": too many locks");
  const bool local = are_local();
  for (bool just_read = false; !local;) {
    if (!state_) {
      LCCFS_CHECK(learn());
      just_read = true;
    }
    if (auto blocked = in_the_way(wanted, expired)) {
      if (just_read) return *blocked;
      state_.reset();
      continue;
    }
    if (is_leased()) break;
    const bool leases = may_lease && is_alone(expired);
    LCCFS_TRY(const bool stored, leases ? lease(expired) : store_lock(wanted, expired));
    if (stored) break;
    just_read = state_.has_value();
  }
  return granted(wanted);
}

bool FileLocks::set_at_once(const LockRequest& wanted) {
  if (!mutex_.try_lock()) return false;
  const Lock lock(mutex_, std::adopt_lock);
  const bool is_free = wanted.type == LockType::none || table_.conflict(wanted) == nullptr;
  const bool is_kept_here = are_local() || (is_leased() && came_ == seen_);
  if (instance_.fenced() || !is_kept_here || !is_free || !has_room_for(wanted)) return false;
  is_used_ = true;
  table_.set(wanted);
  is_held_ = !table_.empty();
  return true;
}

Result<FileLocks::Tried> FileLocks::find(const LockRequest& wanted, const ExpiredInstances& expired) {
  const Lock lock(mutex_);
  LCCFS_CHECK(instance_.check_not_fenced());
  const bool asks_for_own = wanted.type == LockType::none;
  const auto* held = asks_for_own ? table_.own(wanted) : table_.conflict(wanted);
  if (held != nullptr) return Tried{.what = What::blocked_here, .blocking = *held};
  if (asks_for_own || are_local() || is_leased()) return Tried{};
  LCCFS_CHECK(learn());
  return in_the_way(wanted, expired).value_or(Tried{});
}

Result<> FileLocks::store_what_is_left() {
  if (are_local()) return {};
  for (;;) {
    if (!state_) LCCFS_CHECK(learn());
    if (is_leased() || stored_.empty()) return {};
    LCCFS_TRY(const auto stored, format::decode<LocksRecord>(stored_));
    const LocksRecord left{instance_.next_token().number, table_.stored()};
    if (stored.locks == left.locks) return {};
    LCCFS_TRY(const bool done, applied(txn::unlock(ino_, {instance_.id(), left.number}, stored_, left.locks)));
    if (done) {
      stored_ = as_stored(left);
      return {};
    }
    state_.reset();
  }
}

Result<bool> FileLocks::drop(const std::function<void(LockTable&)>& what) {
  if (!is_used_.load()) return false;
  const Lock lock(mutex_);
  auto left = table_;
  what(left);
  if (left == table_) return false;
  if (left.size() > table_.size() && left.size() > LocksRecord::most) {
    return failure(ErrorCode::no_locks, format::inode_object(ino_) + ": too many locks");
  }
  table_ = std::move(left);
  is_held_ = !table_.empty();
  const auto done = store_what_is_left();
  const bool is_over = !done && (done.error().code == ErrorCode::fenced || done.error().code == ErrorCode::stale);
  if (!done && !is_over) {
    log::warning(format::inode_object(ino_) + ": a lock was dropped, and still stands there: " + done.error().context);
  }
  return true;
}

Result<> FileLocks::share() {
  const Lock lock(mutex_);
  if (are_local()) return {};
  for (;;) {
    if (!is_leased()) LCCFS_CHECK(learn());
    if (!is_leased()) return store_what_is_left();
    const LockStateRecord shared{LockStateRecord::Kind::shared, instance_.next_token()};
    const LocksRecord own{shared.token.number, table_.stored()};
    LCCFS_TRY(const bool done, applied(txn::share_locks(ino_, shared.token, *state_, own.locks)));
    if (done) {
      now(shared, as_stored(own));
      own_in_a_row_ = 0;
      return {};
    }
    LCCFS_CHECK(learn());
  }
}

Result<bool> FileLocks::is_used_by(InstanceId other) {
  const Lock lock(mutex_);
  if (are_local() || is_leased()) return false;
  LCCFS_CHECK(learn());
  const bool is_holder =
      decoded_ && decoded_->kind == LockStateRecord::Kind::leased && decoded_->token.instance == other;
  return is_holder || others_.contains(other);
}

}  // namespace lccfs
