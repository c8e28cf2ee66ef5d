// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Every serial order of the operations that is still possible, after what clients were answered. A write or punch of
// two objects counts as two operations: nobody promises that both halves are seen at once.
//
// Growth that was not made durable may be lost when the lease's holder dies; a failed write may leave any of its
// blocks.
#pragma once

#include <cstdint>

#include "state.h"

namespace lease_model {

/// An abstract operation, as it takes effect in a serial order; each thread has two places for them.
enum class Effect : u16 { none, write, truncate, punch, append, read, stat };
u16 effect(Effect kind, int begin = 0, int end = 0, int value = 0);
constexpr int end_of_file = 15;  // what a read past the end is answered

int first_history(std::uint64_t content);
std::uint64_t content_of(int size, const int (&block)[blocks]);

int begun(int history, int place, u16 what);
int answered_with(int history, int place, int answer);
int failed(int history, int place, bool of_dead_client);
/// From here on nothing of these operations may take effect any more (one bit for each place).
int fenced_off(int history, int places);
int growth_lost(int history);
int made_durable(int history, int size);
/// One bit for each place with an operation under way.
int under_way(int history);

/// Whether the file may read like this now.
bool is_possible(int history, std::uint32_t size, std::uint32_t digits);

/// Between searches: the numbers of histories are in their states.
void forget_if_many();

}  // namespace lease_model
