// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/volume_source.h"

namespace lccfs::daemon {

std::string source_of(const VolumeAddress& address) {
  if (!address.local_directory.empty()) return address.local_directory;
  return address.pool + (address.pool_namespace.empty() ? "" : "/" + address.pool_namespace);
}

}  // namespace lccfs::daemon
