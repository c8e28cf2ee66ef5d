// SPDX-License-Identifier: LGPL-2.1-or-later
// What may happen next: a thread continues, a request is applied, fails, or is applied and will be run again, a client
// crashes, is fenced or evicted, or what a dead one had in flight lands late.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "state.h"

namespace lease_model {

struct Successors {
  std::vector<std::pair<State, std::string>> states;
  bool progress = false;  // by something other than a fault
};

Successors successors(const Case& one, const State& state, bool labelled);

}  // namespace lease_model
