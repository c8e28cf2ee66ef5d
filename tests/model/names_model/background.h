// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What happens beside the programs: what a client does after its answers and for others, crashes, steps that are
// applied after a crash, and a collector.
#pragma once

#include "state.h"

namespace names_model {

/// All that may come next.
void successors(const State& state, Successors& out);

}  // namespace names_model
