// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cstdio>

#include "cli/commands.h"

namespace lccfs::cli {

int complain(const char* command, const Error& error, int status) {
  std::string line = std::string("lccfs ") + command + ": " + error.context;
  if (status == exit_usage) line += std::string(" (lccfs ") + command + " --help shows how it is used)";
  std::fprintf(stderr, "%s\n", line.c_str());
  return status;
}

}  // namespace lccfs::cli
