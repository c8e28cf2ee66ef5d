// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lccfs/volume_address.h"
#include "store/local/local_store.h"
#include "store/monitors.h"
#ifdef LCCFS_RADOS
#include "store/rados/rados_store.h"
#endif

namespace lccfs {

Result<std::unique_ptr<ObjectStore>> open_store(const VolumeAddress& address, const StoreOptions& options) {
  if (!address.local_directory.empty()) return open_local_store(address.local_directory, options);
#ifdef LCCFS_RADOS
  return open_rados_store(address, options);
#else
  return failure(ErrorCode::unsupported, address.describe() + ": built without the RADOS store");
#endif
}

Result<std::string> ask_monitors(const VolumeAddress& address, const std::string& command) {
#ifdef LCCFS_RADOS
  if (address.local_directory.empty()) return ask_rados_monitors(address, command);
#endif
  return failure(ErrorCode::unsupported, address.describe() + " is in no cluster: nobody answers " + command);
}

}  // namespace lccfs
