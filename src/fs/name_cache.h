// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What this client remembers of names and inodes. It saves reads before guarded steps, for a second, and no answer rests
// on it: a stale entry costs a refused guard. Trust starts when a read is *sent*. Any thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "fs/expiring_map.h"
#include "fs/inode_view.h"
#include "lccfs/clock.h"
#include "txn/namespace_txn.h"

namespace lccfs {

/// How long a guarded step is tried on what was read before it.
inline constexpr std::chrono::seconds hint_ttl{1};

class NameCache {
 public:
  /// nullopt inside: the name is absent.
  using Hint = std::optional<txn::Entry>;

  explicit NameCache(Clock& clock) : clock_(clock) {}

  /// For a guarded step.
  std::optional<Hint> get(const txn::Name& name) {
    const std::lock_guard lock(mutex_);
    const auto* entry = entries_.get({name.directory, name.name}, clock_.elapsed());
    if (entry == nullptr || entry->value.sent + hint_ttl <= clock_.elapsed()) return std::nullopt;
    return std::make_optional<Hint>(entry->value.hint);
  }
  /// For who reads the name anyway: what stood there when somebody last looked.
  Hint last_seen(const txn::Name& name) {
    const std::lock_guard lock(mutex_);
    const auto* entry = entries_.get({name.directory, name.name}, clock_.elapsed());
    return entry == nullptr ? std::nullopt : entry->value.hint;
  }
  void put(const txn::Name& name, Hint hint, std::chrono::nanoseconds sent) {
    const std::lock_guard lock(mutex_);
    entries_.put({name.directory, name.name}, {std::move(hint), sent}, sent + kept_for, clock_.elapsed());
  }
  void drop(const txn::Name& name) {
    const std::lock_guard lock(mutex_);
    entries_.drop({name.directory, name.name});
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
  std::mutex mutex_;
  ExpiringMap<Key, Seen, KeyHash> entries_{limit};
};

/// Inodes without their maps. What own steps change is seen at once by all threads, whatever reads are in flight: who
/// reads takes a ticket first, and a read that an own change has overtaken is not kept.
class InodeCache {
 public:
  struct Ticket {
    std::chrono::nanoseconds sent{0};
    std::uint64_t changes = 0;
  };

  explicit InodeCache(Clock& clock) : clock_(clock) {}

  Ticket begin(Ino ino) {
    const std::lock_guard lock(mutex_);
    return {clock_.elapsed(), changes(ino)};
  }

  /// nullptr: not in memory.
  std::shared_ptr<const InodeView> get(Ino ino) {
    const std::lock_guard lock(mutex_);
    const auto* entry = entries_.get(ino, clock_.elapsed());
    return entry == nullptr ? nullptr : entry->value;
  }

  void put_read(const Ticket& ticket, const InodeView& view) {
    const std::lock_guard lock(mutex_);
    if (ticket.changes != changes(view.ino)) return;
    const auto* entry = entries_.get(view.ino, clock_.elapsed());
    if (entry == nullptr || entry->value->version <= view.version) put(ticket, view);
  }

  /// An own step changed a few fields, and left the object at that version (0: not known).
  void change(Ino ino, std::uint64_t version, const std::function<void(InodeView&)>& edit) {
    const std::lock_guard lock(mutex_);
    ++changes(ino);
    auto* entry = entries_.get(ino, clock_.elapsed());
    if (entry == nullptr) return;
    if (version <= entry->value->version) return entries_.drop(ino);  // steps came back in another order
    amend(*entry, edit)->version = version;
  }

  /// A step is on its way that changes a few fields; reads sent from now on are ordered behind it.
  void change_behind(Ino ino, const std::function<void(InodeView&)>& edit) {
    const std::lock_guard lock(mutex_);
    ++changes(ino);
    if (auto* entry = entries_.get(ino, clock_.elapsed())) amend(*entry, edit);
  }

  void drop(Ino ino) {
    const std::lock_guard lock(mutex_);
    ++changes(ino);
    entries_.drop(ino);
  }

 private:
  static constexpr std::size_t limit = 50'000;
  static constexpr std::size_t stripes = 1024;
  using Map = ExpiringMap<Ino, std::shared_ptr<const InodeView>>;

  std::uint64_t& changes(Ino ino) { return changes_[ino.value % stripes]; }

  void put(const Ticket& ticket, const InodeView& view) {
    auto kept = std::make_shared<InodeView>(view);
    kept->map = {};
    kept->map_is_whole = !view.is_regular();
    kept->payload.clear();
    kept->extra_ranges.clear();
    kept->keys.clear();
    entries_.put(view.ino, std::move(kept), ticket.sent + hint_ttl, clock_.elapsed());
  }

  static std::shared_ptr<InodeView> amend(Map::Entry& entry, const std::function<void(InodeView&)>& edit) {
    auto edited = std::make_shared<InodeView>(*entry.value);
    edit(*edited);
    entry.value = edited;
    return edited;
  }

  Clock& clock_;
  std::mutex mutex_;
  Map entries_{limit};
  std::array<std::uint64_t, stripes> changes_{};  // by inode: how many own changes there were
};

}  // namespace lccfs
