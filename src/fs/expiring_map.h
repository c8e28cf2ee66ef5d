// SPDX-License-Identifier: LGPL-2.1-or-later
// A bounded map whose entries are trusted for a while. Not thread-safe: its owner's lock guards it.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <unordered_map>
#include <utility>

namespace lccfs {

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

}  // namespace lccfs
