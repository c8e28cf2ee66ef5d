// SPDX-License-Identifier: LGPL-2.1-or-later
// What several clients did, and whether some order of whole calls explains what came of it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "crash/call.h"
#include "crash/model_tree.h"
#include "crash/scenario.h"

namespace lccfs::crash {

/// One call of a client. Time is counted in steps of all clients.
struct Performed {
  static constexpr unsigned never = std::numeric_limits<unsigned>::max();
  unsigned client = 0;
  Call call;
  std::string result;
  unsigned begin = never;  ///< its first step; never: it had none
  unsigned end = never;    ///< never: its client died in it, and it may have happened, or happen later, or not

  /// It may have happened, in part if it is a write, or not.
  bool is_in_doubt() const {
    return end == never || result == describe(ErrorCode::timed_out) || result == describe(ErrorCode::fenced);
  }
  bool is_before(const Performed& other) const { return other.begin != never && end <= other.begin; }
};

/// Whether calls in some order, each at once and whole, give these results and leave that tree. A client's calls keep
/// their order, and a call that ended before another began comes before it. One that is in doubt may be left out. Of
/// a write past the end, the part within the file may be seen before the rest, or come alone if it is in doubt; so may
/// what a hole, zeros or a copy do to any of the objects. Paths
/// are looked up before their call acts (ModelTree::look_up): another client may rename or remove what was found in
/// between.
bool is_explained(const ModelTree& start, const std::vector<Performed>& history, const Tree& tree);

std::string text_of(const std::vector<Performed>& history);

}  // namespace lccfs::crash
