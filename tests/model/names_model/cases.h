// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "state.h"

namespace names_model {

/// Of which each has a story, many that of a counter-example.
std::vector<Case> named_cases();

struct Sweep {
  const char* name;
  std::vector<Case> cases;
};

constexpr int sweep_count = 19;

/// All combinations of some operations, from several beginnings.
Sweep sweep(int number);

}  // namespace names_model
