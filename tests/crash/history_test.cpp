// SPDX-License-Identifier: LGPL-2.1-or-later
// Three clients with several calls each on the same names (docs/TESTING.md).
#include <cstdio>

#include "crash/drawn_histories.h"
#include "support/catch.h"

namespace lccfs::crash {
namespace {

TEST_CASE("histories of three clients are explained by some order of their calls") {
  Interleaver interleaver;
  const auto choice = [](unsigned client) { return operations(0610 + client); };
  const auto played = play({.states = states(), .clients = 3, .in_a_state = 750, .choice = choice}, interleaver);
  std::printf("histories of three clients: %s\n", text_of(played).c_str());
}

}  // namespace
}  // namespace lccfs::crash
