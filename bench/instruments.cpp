// SPDX-License-Identifier: LGPL-2.1-or-later
// What the instruments add to one operation: CPU nanoseconds of the calling thread, least of some rounds, alone and with
// another thread at it. For bench/monitoring.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <latch>
#include <limits>
#include <stop_token>
#include <thread>

#include "metrics/directories.h"
#include "metrics/measured_store.h"
#include "metrics/operations.h"

using namespace lccfs;

namespace {

constexpr int rounds = 15, operations_in_a_round = 200'000;

double cpu_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct Instruments {
  metrics::Operations operations{system_clock(), metrics::store_operations(std::chrono::seconds(2))};
  metrics::Directories directories;
  metrics::DirectoryTag tag = directories.add("vm");

  double cost_of_a_round() {
    const double began = cpu_nanoseconds();
    for (int i = 0; i < operations_in_a_round; ++i) {
      const auto running = operations.begin(3, "inode 4711");
      const auto took = operations.end(running, metrics::Outcome::done, 4096);
      directories.count(tag, metrics::Directories::Work::write, took, 4096);
    }
    return (cpu_nanoseconds() - began) / operations_in_a_round;
  }

  double cost() {
    double least = std::numeric_limits<double>::max();
    for (int round = 0; round < rounds; ++round) least = std::min(least, cost_of_a_round());
    return least;
  }
};

}  // namespace

int main() {
  Instruments instruments;
  std::printf("one thread: %.0f ns an operation\n", instruments.cost());
  std::latch is_running(1);
  const std::jthread other([&](const std::stop_token& stop) {  // in all rounds: the least is of two threads, too
    instruments.cost_of_a_round();
    is_running.count_down();
    while (!stop.stop_requested()) instruments.cost_of_a_round();
  });
  is_running.wait();
  std::printf("two threads: %.0f ns an operation\n", instruments.cost());
  return 0;
}
