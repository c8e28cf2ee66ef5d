// SPDX-License-Identifier: LGPL-2.1-or-later
// The transactions on the inode and on data objects, and what becomes of those of dead clients.
#pragma once

#include "state.h"

namespace lease_model {

/// Applies a request of a client; a read of the inode goes to `seen`.
void apply(State& state, Request& request, int client, Inode* seen);

/// Drops what fences bar, and ends the operations of dead clients that have nothing in flight any more.
void tidy(State& state);

void die(State& state, int client);

}  // namespace lease_model
