// SPDX-License-Identifier: LGPL-2.1-or-later
// All contents that a file ever had, and which of them a mount may still show (docs/POSIX.md).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lccfs::crash {

class FileHistory {
 public:
  static constexpr std::size_t most_bytes = 512;
  using Version = unsigned;
  /// The oldest version of each byte, and of the size, that may be seen.
  struct View {
    std::array<Version, most_bytes> bytes{};
    Version size = 0;
    void raise(const View& other);
  };
  struct Range {
    std::uint64_t begin = 0, end = 0;
    bool meets(Range other) const { return begin < other.end && other.begin < end; }
  };

  FileHistory(std::string bytes, unsigned mounts) : versions_{{std::move(bytes), {}}}, seen_(mounts), kept_(mounts) {}

  const std::string& bytes() const { return versions_.back().bytes; }
  /// It has other bytes now.
  void put(std::string bytes, std::chrono::nanoseconds now) { versions_.push_back({std::move(bytes), now}); }
  /// From the newest version on until it is settled, these bytes may be the old ones or the new ones.
  void unsettle(const void* write, Range range) { unsettled_.push_back({write, range, newest()}); }
  void settle(const void* write);
  bool is_settled(Range range) const;
  bool is_settled() const { return unsettled_.empty(); }

  /// That mount has changed them, or all and the size: it shows nothing older any more.
  void changed(unsigned mount, Range range);
  void changed_size(unsigned mount) { seen_[mount].size = newest(); }
  /// What has ended is seen.
  View all_that_ended() const;
  void sees(unsigned mount, const View& view) { seen_[mount].raise(view); }
  /// Sizes are at most a second old, unless the mount has made sure of newer ones.
  View view_of(unsigned mount, std::chrono::nanoseconds now) const;

  /// What the mount has made durable: its death takes nothing of it away.
  void keeps(unsigned mount, const View& view) { kept_[mount].raise(view); }
  void keeps_range(unsigned mount, Range range);
  const View& kept_by(unsigned mount) const { return kept_[mount]; }

  /// Whether that may be what a read finds that was begun when `view` was the oldest that it may show.
  bool may_be_read(const View& view, std::uint64_t offset_bytes, std::uint64_t asked_bytes,
                   const std::string& found) const;
  bool may_be_size(const View& view, std::uint64_t size_bytes) const;

 private:
  struct Content {
    std::string bytes;
    std::chrono::nanoseconds since{0};
  };
  struct Unsettled {
    const void* write;
    Range range;
    Version since;
  };
  Version newest() const { return static_cast<Version>(versions_.size()) - 1; }
  bool may_be_byte(const View& view, std::uint64_t at, char byte) const;

  std::vector<Content> versions_;
  std::vector<Unsettled> unsettled_;
  std::vector<View> seen_, kept_;  // by mount
};

}  // namespace lccfs::crash
