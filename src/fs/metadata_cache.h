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
///
/// And *unshared* inodes, with their maps: they were made here, under a tenure of the directory that has their only name,
/// and nobody else has come by that name: readers ask for it (docs/NAMES.md section 5). Answers rest on these, too.
class InodeCache {
 public:
  struct Ticket {
    std::chrono::nanoseconds sent{0};
    std::uint64_t changes = 0;
    static constexpr std::uint64_t keeps_nothing = ~std::uint64_t{0};  // as `changes`: the read is not kept
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
    const bool is_trusted =
        kept != nullptr && (kept->view->sent + hint_ttl > now || is_held(*kept->view) || is_unshared(*kept));
    ++(is_trusted ? counts_.hits : counts_.misses);
    return is_trusted ? kept->view : nullptr;
  }
  /// Its version is that of its mode, owner, flags and ctime. nullopt: it is shared, as far as is known.
  std::optional<Inode> unshared(Ino ino) {
    const Lock lock(mutex_);
    const auto* kept = inodes_.get(ino, clock_.elapsed());
    if (kept == nullptr || !is_unshared(*kept)) return std::nullopt;
    Inode view = *kept->view;
    view.version = kept->attr_version;
    return view;
  }
  CacheCounts counts() const {
    const Lock lock(mutex_);
    return counts_;
  }

  void put_read(const Ticket& ticket, const Inode& view) {
    const Lock lock(mutex_);
    const auto* kept = inodes_.get(view.ino, clock_.elapsed());
    if (ticket.changes != changes(view.ino)) {
      const bool is_outdated =
          kept != nullptr && !kept->home && !view.is_directory() && kept->view->version < view.version;
      if (is_outdated) inodes_.drop(view.ino);
      return;
    }
    if (kept != nullptr && kept->view->version > view.version) return;
    put(ticket.sent, view, kept != nullptr ? kept->home : std::nullopt);
  }
  /// An inode that was made here, and whose only name is in that directory since.
  using Home = HeldDirectories::Tenure;
  void put_unshared(const Inode& view, const Home& home) {
    const Lock lock(mutex_);
    put(clock_.elapsed(), view, home);
  }
  /// It is about to get a name elsewhere.
  void share(Ino ino) {
    const Lock lock(mutex_);
    ++changes(ino);
    if (auto* kept = inodes_.get(ino, clock_.elapsed())) kept->home.reset();
  }
  /// A file as it is in the store, or is to be made there, with nobody writing it. `attr_version`: of its mode, owner,
  /// flags and ctime. `is_known`: it is certainly so.
  void stored(const Inode& file, std::uint64_t attr_version, bool is_known) {
    const Lock lock(mutex_);
    auto* kept = inodes_.get(file.ino, clock_.elapsed());
    if (kept == nullptr || !kept->home) return;
    ++changes(file.ino);
    const bool is_newest = is_known && file.version >= kept->view->version;
    if (!is_newest || !may_keep_map(file)) return inodes_.drop(file.ino);
    auto merged = std::make_shared<Inode>(file);
    if (attr_version <= kept->attr_version) {
      merged->attr = kept->view->attr;
      merged->attr_raw = kept->view->attr_raw;
    }
    merged->ctime = std::max(merged->ctime, kept->view->ctime);
    merged->sent = kept->view->sent;
    kept->attr_version = std::max(kept->attr_version, attr_version);
    kept->view = std::move(merged);
  }

  /// An own step changed a few fields, and left the object at that version (0: not known). nullopt: the step is on its
  /// way, and reads sent from now on are ordered after it.
  void change(Ino ino, std::optional<std::uint64_t> version, const std::function<void(Inode&)>& edit) {
    change(ino, version, edit, false);
  }
  /// A change that is not stored, of an unshared inode: `edit` is given its home. Does nothing to others.
  void change_unshared(Ino ino, const std::function<void(Inode&, const Home&)>& edit) {
    const Lock lock(mutex_);
    auto* kept = inodes_.get(ino, clock_.elapsed());
    if (kept == nullptr || !is_unshared(*kept)) return;
    ++changes(ino);
    auto edited = std::make_shared<Inode>(*kept->view);
    edit(*edited, *kept->home);
    kept->view = std::move(edited);
  }
  /// The same of `attr`.
  void change_attr(Ino ino, std::optional<std::uint64_t> version, const std::function<void(Inode&)>& edit) {
    change(ino, version, edit, true);
  }

  void drop(Ino ino) {
    const Lock lock(mutex_);
    ++changes(ino);
    inodes_.drop(ino);
  }

 private:
  void change(Ino ino, std::optional<std::uint64_t> version, const std::function<void(Inode&)>& edit, bool is_of_attr) {
    const Lock lock(mutex_);
    ++changes(ino);
    auto* kept = inodes_.get(ino, clock_.elapsed());
    if (kept == nullptr) return;
    if (version && *version <= kept->view->version) return inodes_.drop(ino);  // steps came back in another order
    auto edited = std::make_shared<Inode>(*kept->view);
    edit(*edited);
    edited->version = version.value_or(edited->version);
    if (is_of_attr && version) kept->attr_version = *version;
    kept->view = std::move(edited);
  }

  struct Kept {
    std::shared_ptr<const Inode> view;
    std::optional<Home> home;        // of an unshared inode, while that tenure stands
    std::uint64_t attr_version = 0;  // as of which `attr` is known: other changes make versions, too
  };
  static constexpr std::size_t limit = 50'000;
  static constexpr std::size_t stripes = 1024;
  static constexpr std::chrono::hours kept_for{1};

  void put(std::chrono::nanoseconds sent, const Inode& view, std::optional<Home> home) REQUIRES(mutex_) {
    auto copy = std::make_shared<Inode>(view);
    copy->sent = sent;
    if (!may_keep_map(view)) home.reset();
    if (!home) copy->map = {};
    copy->map_is_whole = home || !view.is_regular();
    copy->payload.clear();
    copy->extra_ranges.clear();
    copy->keys.clear();
    inodes_.put(view.ino, {std::move(copy), home, view.version}, sent + kept_for, clock_.elapsed());
  }

  /// A small file's.
  static bool may_keep_map(const Inode& view) { return view.map_is_whole && view.map.blocks().size() <= 1; }

  bool is_held(const Inode& view) const {
    return view.directory_lease && held_.is_held(view.ino, *view.directory_lease);
  }
  /// Who came by the number of a directory has asked for its lease.
  bool is_unshared(const Kept& kept) const {
    if (kept.view->is_directory() && !is_held(*kept.view)) return false;
    return kept.home && held_.is_held(kept.home->directory, kept.home->token);
  }

  std::uint64_t& changes(Ino ino) REQUIRES(mutex_) { return changes_[ino.value % stripes]; }

  Clock& clock_;
  const HeldDirectories& held_;
  mutable Mutex mutex_;
  CacheCounts counts_ GUARDED_BY(mutex_);
  ExpiringMap<Ino, Kept> inodes_ GUARDED_BY(mutex_){limit};
  std::array<std::uint64_t, stripes> changes_ GUARDED_BY(mutex_){};  // by inode: how many own changes there were
};

}  // namespace lccfs
