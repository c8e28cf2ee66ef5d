// SPDX-License-Identifier: LGPL-2.1-or-later
// What programs do with the file (docs/DATA.md; src/fs/data_write.cpp, data_read.cpp, file_handles.cpp).
#pragma once

#include "state.h"

namespace lease_model {

/// The operation begins: what it will do is under way in the serial orders.
void begin(State& s, Thread& t, const Operation& operation);

/// Runs it on; true: it has returned. In local[1] what a read or stat was answered.
bool run_on(State& s, Thread& t, const Operation& operation);

}  // namespace lease_model
