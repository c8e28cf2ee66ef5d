// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/open_volume.h"

namespace lccfs::cli {

Result<std::unique_ptr<ObjectStore>> open_briefly(const VolumeAddress& address, bool create) {
  StoreOptions options;
  options.step_timeout = std::chrono::seconds(30);
  options.create = create;
  return open_store(address, options);
}

}  // namespace lccfs::cli
