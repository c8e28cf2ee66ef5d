// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cstdlib>

#include "base/log.h"
#define CATCH_CONFIG_RUNNER
#include "support/catch.h"

/// Tests crash and fence clients by the hundred: their log is wanted only when asked for.
int main(int argc, char** argv) {
  if (std::getenv("LCCFS_TEST_LOG") == nullptr) lccfs::log::to_file("/dev/null");
  return Catch::Session().run(argc, argv);
}
