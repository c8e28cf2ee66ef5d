// SPDX-License-Identifier: LGPL-2.1-or-later
// The findings of one check, in the order of their repairs. Of more than there is room for, those whose repairs come
// first: what rests on them is found again by a later check. One thread.
#pragma once

#include <array>
#include <vector>

#include "check/finding.h"

namespace lccfs::repair {

class Round {
 public:
  explicit Round(std::size_t room) : room_(room) {}

  void add(const check::Finding& finding);
  /// Whether some had to be left out.
  bool cut() const { return cut_; }
  std::vector<check::Finding> take();

 private:
  const std::size_t room_;
  std::size_t held_ = 0;
  bool cut_ = false;
  std::array<std::vector<check::Finding>, 16> by_rank_;
};

/// Findings of a lower rank are repaired first.
unsigned rank(const check::Finding& finding);

}  // namespace lccfs::repair
