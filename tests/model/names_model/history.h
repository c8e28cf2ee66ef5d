// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What clients were answered, and what is there in the end.
#pragma once

#include "state.h"

namespace names_model {

/// Some serial order respects real time, and explains all answers of living clients and the tree. Of each crashed
/// client it has, in each directory, a prefix of what was answered; all that it fsynced; and no removal without the
/// insertions answered before it in other directories.
bool fits_an_order(const State& state);

}  // namespace names_model
