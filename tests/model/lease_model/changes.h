// SPDX-License-Identifier: LGPL-2.1-or-later
// write, append, truncate, punch: level 0 (docs/DATA.md section 5; src/fs/data_write.cpp, truncate.cpp).
#pragma once

#include <algorithm>
#include <utility>

#include "resumable.h"

namespace lease_model {

/// Of how many objects blocks [begin, end) are.
inline int parts_of(int begin, int end) { return (end - 1) / 2 - begin / 2 + 1; }

inline std::pair<int, int> part_of(int begin, int end, int part) {
  const int object = begin / 2 + part;
  return {std::max(begin, object * 2), std::min(end, object * 2 + 2)};
}

bool write(State& s, Thread& t, Memory& m, int begin, int end, int value, bool append);
bool truncate(State& s, Thread& t, Memory& m, int size);
bool punch(State& s, Thread& t, Memory& m, int begin, int end);

}  // namespace lease_model
