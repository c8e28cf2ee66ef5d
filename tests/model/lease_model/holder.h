// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Getting the lease, and what only its holder does (docs/DATA.md sections 2 to 4; src/fs/lease.cpp). All of it is
// resumable (resumable.h).
#pragma once

#include "resumable.h"

namespace lease_model {

/// Nothing keeps a new change out.
inline bool is_free(const Memory& m) { return m.releasing == 0 && m.alone == 0 && m.acquiring == 0; }
bool may_step(const Memory& m);

/// Whoever was asked has answered or is fenced.
inline bool all_answered(const State& s, const Thread& t) { return (t.asked & ~s.fenced) == 0; }

constexpr int not_to_be_had = 9;

/// Level 1. In local[0] not_to_be_had, or 0.
bool acquire(State& s, Thread& t, Memory& m);

/// Level 1. Map bits for blocks [begin, end).
bool set_map_bits(State& s, Thread& t, Memory& m, int begin, int end);

/// Level 1: cuts the boundary object at the size, removes mapped objects past it.
bool cut_tail(Thread& t, Memory& m, int size);

/// Level 0: answers questions of other clients, one at a time, for ever.
bool answer_questions(State& s, Thread& t, Memory& m);

}  // namespace lease_model
