// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What memory holds of entries and inodes. It saves reads before guarded steps, for a second, and no answer rests on
// it, but for inodes of directories that are held here (held_directories.h): an old entry costs a refused guard. Trust
// starts when a read is *sent*. Any thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "fs/held_directories.h"
#include "fs/inodes.h"
#include "lccfs/clock.h"
#include "lccfs/file_system.h"
#include "txn/namespace_txn.h"

namespace lccfs {

/// A bounded map whose entries are trusted for a while. Not thread-safe: its owner's lock guards it.
template <class Key, class Value, class Hash = std::hash<Key>>
class ExpiringMap {
 public:
  explicit ExpiringMap(std::size_t limit) : limit_(limit) {}

  void put(const Key& key, Value value, std::chrono::nanoseconds expires, std::chrono::nanoseconds now) {
    entries_.insert_or_assign(key, Entry{std::move(value), expires});
    line_.emplace_back(expires, key);
    while (!line_.empty() && (line_.size() > limit_ || line_.front().first <= now)) {
      const auto found = entries_.find(line_.front().second);
      if (found != entries_.end() && found->second.expires == line_.front().first) entries_.erase(found);
      line_.pop_front();
    }
  }

  /// nullptr: not there, or expired.
  Value* get(const Key& key, std::chrono::nanoseconds now) {
    const auto found = entries_.find(key);
    return found == entries_.end() || found->second.expires <= now ? nullptr : &found->second.value;
  }

  void drop(const Key& key) { entries_.erase(key); }

 private:
  struct Entry {
    Value value;
    std::chrono::nanoseconds expires{0};
  };

  const std::size_t limit_;
  std::unordered_map<Key, Entry, Hash> entries_;
  std::deque<std::pair<std::chrono::nanoseconds, Key>> line_;  // in the order they came, about that of their expiry
};

/// How long a guarded step is tried on what was read before it.
inline constexpr std::chrono::seconds hint_ttl{1};

class EntryCache {
 public:
  /// nullopt inside: the name is absent.
  using Hint = std::optional<txn::Entry>;

  explicit EntryCache(Clock& clock) : clock_(clock) {}

  /// For a guarded step.
  std::optional<Hint> get(const txn::Name& name) {
    const Lock lock(mutex_);
    const auto* seen = entries_.get({name.directory, name.name}, clock_.elapsed());
    const bool is_trusted = seen != nullptr && seen->sent + hint_ttl > clock_.elapsed();
    ++(is_trusted ? counts_.hits : counts_.misses);
    if (!is_trusted) return std::nullopt;
    return std::make_optional<Hint>(seen->hint);
  }
  /// For callers that read the name anyway: what stood there at the last look.
  Hint last_seen(const txn::Name& name) {
    const Lock lock(mutex_);
    const auto* seen = entries_.get({name.directory, name.name}, clock_.elapsed());
    return seen == nullptr ? std::nullopt : seen->hint;
  }
  void put(const txn::Name& name, Hint hint, std::chrono::nanoseconds sent) {
    const Lock lock(mutex_);
    entries_.put({name.directory, name.name}, {std::move(hint), sent}, sent + kept_for, clock_.elapsed());
  }
  void drop(const txn::Name& name) {
    const Lock lock(mutex_);
    entries_.drop({name.directory, name.name});
  }
  /// Of what was wanted for guarded steps.
  CacheCounts counts() const {
    const Lock lock(mutex_);
    return counts_;
  }

 private:
  struct Seen {
    Hint hint;
    std::chrono::nanoseconds sent{0};
  };
  static constexpr std::size_t limit = 50'000;
  static constexpr std::chrono::hours kept_for{1};
  using Key = std::pair<Ino, std::string>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return std::hash<std::string>{}(key.second) ^ (std::hash<Ino>{}(key.first) * 0x9E3779B97F4A7C15U);
    }
  };

  Clock& clock_;
  mutable Mutex mutex_;
  CacheCounts counts_ GUARDED_BY(mutex_);
  ExpiringMap<Key, Seen, KeyHash> entries_ GUARDED_BY(mutex_){limit};
};

/// Inodes without their maps, for guarded steps: for a second, and directories that are held here for as long as that (a
/// read under another tenure does not count). All threads see changes by own steps at once, whatever reads are in flight: a reader
/// takes a ticket first, and a read that an own change has overtaken is not kept.
class InodeCache {
 public:
  struct Ticket {
    std::chrono::nanoseconds sent{0};
    std::uint64_t changes = 0;
  };

  InodeCache(Clock& clock, const HeldDirectories& held) : clock_(clock), held_(held) {}

  Ticket begin(Ino ino) {
    const Lock lock(mutex_);
    return {clock_.elapsed(), changes(ino)};
  }

  /// nullptr: not in memory.
  std::shared_ptr<const Inode> get(Ino ino) {
    const Lock lock(mutex_);
    const auto now = clock_.elapsed();
    const auto* kept = inodes_.get(ino, now);
    const bool is_trusted = kept != nullptr && ((*kept)->sent + hint_ttl > now || is_held(**kept));
    ++(is_trusted ? counts_.hits : counts_.misses);
    return is_trusted ? *kept : nullptr;
  }
  CacheCounts counts() const {
    const Lock lock(mutex_);
    return counts_;
  }

  void put_read(const Ticket& ticket, const Inode& view) {
    const Lock lock(mutex_);
    if (ticket.changes != changes(view.ino)) return;
    const auto* kept = inodes_.get(view.ino, clock_.elapsed());
    if (kept != nullptr && (*kept)->version > view.version) return;
    auto copy = std::make_shared<Inode>(view);
    copy->sent = ticket.sent;
    copy->map = {};
    copy->map_is_whole = !view.is_regular();
    copy->payload.clear();
    copy->extra_ranges.clear();
    copy->keys.clear();
    inodes_.put(view.ino, std::move(copy), ticket.sent + kept_for, clock_.elapsed());
  }

  /// An own step changed a few fields, and left the object at that version (0: not known). nullopt: the step is on its
  /// way, and reads sent from now on are ordered after it.
  void change(Ino ino, std::optional<std::uint64_t> version, const std::function<void(Inode&)>& edit) {
    const Lock lock(mutex_);
    ++changes(ino);
    auto* kept = inodes_.get(ino, clock_.elapsed());
    if (kept == nullptr) return;
    if (version && *version <= (*kept)->version) return inodes_.drop(ino);  // steps came back in another order
    auto edited = std::make_shared<Inode>(**kept);
    edit(*edited);
    edited->version = version.value_or(edited->version);
    *kept = std::move(edited);
  }

  void drop(Ino ino) {
    const Lock lock(mutex_);
    ++changes(ino);
    inodes_.drop(ino);
  }

 private:
  static constexpr std::size_t limit = 50'000;
  static constexpr std::size_t stripes = 1024;
  static constexpr std::chrono::hours kept_for{1};

  bool is_held(const Inode& view) const {
    return view.directory_lease && held_.is_held(view.ino, *view.directory_lease);
  }

  std::uint64_t& changes(Ino ino) REQUIRES(mutex_) { return changes_[ino.value % stripes]; }

  Clock& clock_;
  const HeldDirectories& held_;
  mutable Mutex mutex_;
  CacheCounts counts_ GUARDED_BY(mutex_);
  ExpiringMap<Ino, std::shared_ptr<const Inode>> inodes_ GUARDED_BY(mutex_){limit};
  std::array<std::uint64_t, stripes> changes_ GUARDED_BY(mutex_){};  // by inode: how many own changes there were
};

}  // namespace lccfs
