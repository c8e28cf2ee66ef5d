// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cstdlib>
#include <iostream>
#include <string>

#include "base/log.h"
#define CATCH_CONFIG_RUNNER
#include "support/catch.h"

namespace {

/// Of a deliberate fault (tests/mutations) the first thing that is seen is enough; after it a test may hang.
struct EndsAtTheFirstFailure : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo& info) override { name = info.name; }
  bool assertionEnded(const Catch::AssertionStats& stats) override {
    if (stats.assertionResult.isOk() || std::getenv("LCCFS_FAULT") == nullptr) return false;
    const std::string line(79, '-');
    std::cout << line << '\n' << name << '\n' << line << std::endl;
    std::_Exit(1);
  }
  std::string name;
};
CATCH_REGISTER_LISTENER(EndsAtTheFirstFailure)

}  // namespace

/// Tests crash and fence clients by the hundred: their log is wanted only when asked for.
int main(int argc, char** argv) {
  if (std::getenv("LCCFS_TEST_LOG") == nullptr) lccfs::log::to_file("/dev/null");
  return Catch::Session().run(argc, argv);
}
