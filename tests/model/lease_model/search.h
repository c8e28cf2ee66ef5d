// SPDX-License-Identifier: LGPL-2.1-or-later
// Breadth first through all interleavings of a case: invariants M and T (docs/PROTOCOL.md section 3 and docs/DATA.md
// section 5), answers and content that fit a serial order, nobody stuck. In every state.
#pragma once

#include "../native_model.h"
#include "state.h"

namespace lease_model {

using native_model::Outcome;

Outcome explore(const Case& one, std::size_t most_states, bool with_trace);

/// What is wrong with a state.
std::string violation(const State& state);

}  // namespace lease_model
