// SPDX-License-Identifier: LGPL-2.1-or-later
// The looks of `lccfs top`, one after the other. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "cli/running.h"
#include "cli/top_table.h"
#include "lccfs/clock.h"

namespace lccfs::cli {

class TopLooks {
 public:
  using Look = std::function<Result<MetricsPage>(const metrics::HttpPlace&)>;
  /// `programs` as they were seen just now.
  TopLooks(std::vector<RunningProgram> programs, Clock& clock, Look look = look_at);

  /// What each has done since it was seen last. One that does not answer in time is not in the table: the next look is
  /// to show it again, as it is the slow one that somebody looks for. One that has ended is left out from then on.
  TopTable look_again();
  bool all_have_ended() const { return programs_.empty(); }

 private:
  struct Program {
    RunningProgram seen;
    std::chrono::nanoseconds seen_at;
  };
  std::vector<Program> programs_;
  Clock& clock_;
  const Look look_;
};

}  // namespace lccfs::cli
