// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "state.h"

namespace names_model {

/// In every state. nullptr: all is well.
const char* violation(const State& state);

/// At the end, whatever crashed: a collector leaves nothing behind. nullptr: so it is.
const char* left_over(State state);

/// All living programs are through, and their logs are stored.
bool is_finished(const State& state);

}  // namespace names_model
