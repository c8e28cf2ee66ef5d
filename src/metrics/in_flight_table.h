// SPDX-License-Identifier: LGPL-2.1-or-later
// What is under way at this moment: a table for which no thread that begins or ends something ever waits, and in which
// a ticker sees what hangs while it hangs.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lccfs::metrics {

/// Any thread. Lock-free, and takes no memory but at first.
class InFlightTable {
 public:
  /// More than a mount has under way mostly; what finds no place is not seen by `look`, and else is as all.
  static constexpr std::uint32_t places = 4096;
  static constexpr std::uint32_t no_place = places;

  /// `subject` is cut to `longest_subject`. Answers the place, or no_place.
  static constexpr std::size_t longest_subject = 112;
  std::uint32_t begin(std::chrono::nanoseconds now, unsigned kind, std::string_view subject);
  void end(std::uint32_t place);
  /// Its subject. For the caller of `begin`, before `end`.
  std::string subject(std::uint32_t place) const;

  struct Seen {
    std::uint32_t place;
    unsigned kind;
    std::chrono::nanoseconds began;
    std::string subject;
  };
  /// Each that began before, as it was at some moment of this call.
  void look(std::chrono::nanoseconds before, const std::function<void(const Seen&)>& tell) const;

 private:
  static constexpr std::size_t words = longest_subject / sizeof(std::uint64_t);
  struct alignas(64) Place {  // the words of a short subject are in its first line
    std::atomic<std::int64_t> began_ns{free};
    std::atomic<std::uint32_t> kind{0};
    std::array<std::atomic<std::uint64_t>, words> subject{};
  };
  static constexpr std::int64_t free = 0, being_taken = -1;

  bool take(Place& place);

  const std::unique_ptr<Place[]> places_ = std::make_unique<Place[]>(places);
  std::atomic<std::uint32_t> next_{0};  // where to look when the thread's own places are taken
};

}  // namespace lccfs::metrics
