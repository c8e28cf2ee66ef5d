// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cstdio>

#include "cli/commands.h"

namespace lccfs::cli {

int complain(const char* command, const Error& error, int status) {
  std::fprintf(stderr, "lccfs %s: %s\n", command, error.context.c_str());
  if (status == exit_usage) std::fprintf(stderr, "lccfs %s --help shows how it is used\n", command);
  return status;
}

}  // namespace lccfs::cli
