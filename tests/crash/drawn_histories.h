// SPDX-License-Identifier: LGPL-2.1-or-later
// Histories of several clients: calls, their steps' order and a fault in one of them, all drawn by seed.
#pragma once

#include <functional>
#include <vector>

#include "crash/interleaver.h"
#include "crash/pairs.h"

namespace lccfs::crash {

struct DrawnHistories {
  std::vector<State> states;
  unsigned clients = 0;
  unsigned in_a_state = 0;                                   ///< histories
  std::function<std::vector<Call>(unsigned client)> choice;  ///< what a client's one to three calls are drawn from
};

/// Plays them, and expects that some order of their calls explains each. How many there were, none counted twice.
std::size_t play(const DrawnHistories& histories, Interleaver& interleaver);

}  // namespace lccfs::crash
