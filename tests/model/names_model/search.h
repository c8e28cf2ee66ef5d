// SPDX-License-Identifier: LGPL-2.1-or-later
// Breadth first through all interleavings of a case, so that a trace to a violation is a shortest one.
#pragma once

#include "../native_model.h"
#include "state.h"

namespace names_model {

using native_model::Outcome;

Outcome explore(const Case& one, std::size_t most_states, bool with_trace);

}  // namespace names_model
