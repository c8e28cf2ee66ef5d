// SPDX-License-Identifier: LGPL-2.1-or-later
// What each directory on top of a volume is used for: to Nova, a VM. At most so many have a label of their own, all
// others are one.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "metrics/exposition.h"

namespace lccfs::metrics {

/// Stands for one in what is remembered for each inode and open file. A place's next directory has another number: what
/// was remembered of the one before counts among the others then.
struct DirectoryTag {
  std::uint16_t value = 0;
  bool operator==(const DirectoryTag&) const = default;
};
inline constexpr DirectoryTag top_itself{0};
inline constexpr DirectoryTag other_directories{1};

/// Any thread.
class Directories {
 public:
  static constexpr unsigned most_labels = 200;
  enum class Work { read, write, other };

  /// `other_directories` if there is no place left.
  DirectoryTag add(std::string_view name) EXCLUDES(mutex_);
  /// It has that name now. false: its label is gone.
  bool name(DirectoryTag tag, std::string_view name) EXCLUDES(mutex_);
  /// Its label goes, and its place is free.
  void drop(DirectoryTag tag) EXCLUDES(mutex_);
  /// Whether it has a label of its own.
  static bool is_own(DirectoryTag tag) { return place_of(tag) >= first_own; }

  /// Lock-free, without taking memory.
  void count(DirectoryTag tag, Work work, std::chrono::nanoseconds took, std::uint64_t bytes);
  void write(Exposition& page) const EXCLUDES(mutex_);

 private:
  // The tag: the place in the upper byte, which use of it in the lower.
  static constexpr unsigned first_own = 2, places = first_own + most_labels;
  static_assert(places <= 256);
  static constexpr unsigned works = 3;
  static unsigned place_of(DirectoryTag tag) { return tag.value < first_own ? tag.value : tag.value >> 8; }

  struct alignas(64) Place {
    std::array<std::atomic<std::uint64_t>, works> operations{}, took_ns{}, bytes{};
    std::atomic<std::uint16_t> tag{0};  // of its present directory; 0: it has none
  };
  /// The place's last user loses it.
  void take_name(unsigned place, std::string_view name) REQUIRES(mutex_);
  /// Those that are shown now, with their labels.
  struct Shown {
    const Place& place;
    std::string label;
  };
  std::vector<Shown> shown() const EXCLUDES(mutex_);

  std::array<Place, places> counts_;
  mutable Mutex mutex_;
  std::array<std::string, places> names_ GUARDED_BY(mutex_);
  std::array<std::uint8_t, places> uses_ GUARDED_BY(mutex_){};
};

}  // namespace lccfs::metrics
