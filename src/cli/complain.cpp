// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/program.h"
#include "cli/commands.h"

namespace lccfs::cli {

int complain(const char* command, const Error& error, int status) {
  const std::string name = std::string("lccfs ") + command;
  print_error(name, error.context + (status == exit_usage ? " (" + name + " --help shows how it is used)" : ""));
  return status;
}

}  // namespace lccfs::cli
