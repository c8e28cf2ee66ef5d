// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Clients that read, write and cut one file, in drawn orders of their steps, with a fault in one of them: write leases
// asked for, released and taken over in the midst of everything.
#include <cstdio>

#include "crash/drawn_histories.h"
#include "support/catch.h"

namespace lccfs::crash {
namespace {

TEST_CASE("what clients read of a file that others write and cut is explained by some order of their calls") {
  Interleaver interleaver(std::chrono::milliseconds(2));  // who asks for a lease often waits
  const auto choice = [](unsigned client) { return file_calls(static_cast<char>('p' + client)); };
  const auto played = play({.states = data_states(), .clients = 2, .in_a_state = 400, .choice = choice}, interleaver);
  std::printf("histories of two clients on one file: %s\n", text_of(played).c_str());
}

}  // namespace
}  // namespace lccfs::crash
