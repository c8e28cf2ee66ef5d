// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics/run_folder.h"

#include <unistd.h>

#include <cstdlib>

namespace lccfs::metrics {

std::string run_folder() {
  if (geteuid() == 0) return "/run/lccfs";
  const char* own = std::getenv("XDG_RUNTIME_DIR");
  return own == nullptr || *own != '/' ? "" : std::string(own) + "/lccfs";
}

}  // namespace lccfs::metrics
