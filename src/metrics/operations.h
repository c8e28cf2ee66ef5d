// SPDX-License-Identifier: LGPL-2.1-or-later
// The instruments of one kind of work: what the kernel asks of a mount, or a mount of its store. By operation how many,
// how long, how many failed; what is under way; and a line in the log for each that is slow, also while it hangs.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "lccfs/clock.h"
#include "metrics/exposition.h"
#include "metrics/in_flight_table.h"
#include "metrics/latency_histogram.h"
#include "metrics/rate_limit.h"

namespace lccfs::metrics {

struct OperationKind {
  enum class Moves { nothing, in, out };
  const char* name = "";
  Moves moves = Moves::nothing;
  bool waits_for_others = false;  ///< for as long as they like: never slow
};

enum class Outcome {
  done,
  refused,  ///< an error that is an answer: no such name, no space, not permitted
  failed,   ///< one that no caller has caused
};

class Operations {
 public:
  static constexpr std::size_t most_kinds = 48;

  struct About {
    std::string family;  ///< "lccfs_operation"
    std::string noun;    ///< in lines of the log: "operation"
    std::span<const OperationKind> kinds;
    std::chrono::nanoseconds slow_after{0};  ///< 0: none is slow
  };
  Operations(Clock& clock, const About& about);

  /// One that is under way. The code that began it ends it, once.
  struct Running {
    std::int64_t began_ns = 0;
    std::uint32_t place = InFlightTable::no_place;
    std::uint32_t kind = 0;
  };
  // -- any thread; lock-free but for the line about a slow one, and without taking memory
  Running begin(std::size_t kind, std::string_view subject);
  /// Answers how long it took. `bytes`: that were moved.
  std::chrono::nanoseconds end(const Running& running, Outcome outcome, std::uint64_t bytes = 0);

  /// What one that hangs waits for, as far as that is known: the end of its line in the log.
  using Reason = std::function<std::string(std::string_view subject)>;
  /// To be called about once a second, by one thread: tells what hangs.
  void tick(const Reason& reason_of = {});
  /// The oldest of those under way whose subject this accepts, for a line of the log: what it is, and since when. Empty: there
  /// is none.
  std::string oldest_of(const std::function<bool(std::string_view subject)>& is_meant) const;
  void write(Exposition& page) const;

 private:
  struct Kind {
    LatencyHistogram took;
    ShardedCounts<4> counts;  // refused, failed, slow, bytes
  };
  enum Count : std::size_t { refused, failed, slow, bytes_moved };

  void write_counts(Exposition& page, const char* suffix, const char* help, Count which) const;
  void write_bytes(Exposition& page, const char* suffix, const char* help, OperationKind::Moves moves) const;
  std::chrono::nanoseconds age_of_oldest() const;
  std::string named(std::size_t kind, std::string_view subject) const;
  void tell(std::size_t kind, std::string_view subject, std::string_view what, std::chrono::nanoseconds so_long,
            const Reason& reason_of = {});

  Clock& clock_;
  const About about_;
  std::array<Kind, most_kinds> kinds_;
  ShardedCounts<2> begun_and_ended_;
  InFlightTable in_flight_;
  RateLimit lines_;
  std::map<std::uint32_t, std::chrono::nanoseconds> told_;  // the ticker's: which hang that were told of, since when
};

}  // namespace lccfs::metrics
