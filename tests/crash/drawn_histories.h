// SPDX-License-Identifier: LGPL-2.1-or-later
// Histories of several clients: calls, their steps' order and a fault in one of them, all drawn by seed.
#pragma once

#include <functional>
#include <string>
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

/// How many there were, none counted twice.
struct PlayedHistories {
  std::size_t all = 0, with_object_away = 0, with_lapsed_watches = 0;
};
std::string text_of(const PlayedHistories& played);

/// Plays them, and expects that some order of their calls explains each.
PlayedHistories play(const DrawnHistories& histories, Interleaver& interleaver);

}  // namespace lccfs::crash
