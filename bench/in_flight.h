// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdio>
#include <cstdlib>
#include <semaphore>
#include <string>

namespace lccfs::bench {

/// Keeps a number of operations going: `begin` before each, `end` in its completion. A failure ends the program.
class InFlight {
 public:
  explicit InFlight(unsigned limit) : limit_(limit), free_(limit) {}
  ~InFlight() { wait_for_all(); }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  void begin() { free_.acquire(); }
  void end() { free_.release(); }
  static void fail(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::_Exit(1);
  }
  /// By the thread that begins them.
  void wait_for_all() {
    for (unsigned i = 0; i < limit_; ++i) free_.acquire();
    free_.release(limit_);
  }

 private:
  const unsigned limit_;
  std::counting_semaphore<> free_;
};

}  // namespace lccfs::bench
