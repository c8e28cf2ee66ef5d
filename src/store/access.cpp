// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lccfs/access.h"

#ifdef LCCFS_RADOS
#include "store/rados/keys.h"
#endif

namespace lccfs {
namespace {

std::unexpected<Error> no_keys(const VolumeAddress& address) {
  return failure(ErrorCode::unsupported, address.describe() + ": only volumes in Ceph pools have keys");
}

}  // namespace

Result<Capabilities> needed_capabilities(const VolumeAddress& address, const std::string& data_pool, Access access) {
  if (!address.local_directory.empty()) return no_keys(address);
#ifdef LCCFS_RADOS
  return rados::needed_capabilities(address, data_pool, access);
#else
  static_cast<void>(data_pool), static_cast<void>(access);
  return no_keys(address);
#endif
}

Result<std::string> make_key(const VolumeAddress& address, const std::string& name, const Capabilities& capabilities) {
  if (!address.local_directory.empty()) return no_keys(address);
#ifdef LCCFS_RADOS
  return rados::make_key(address, name, capabilities);
#else
  static_cast<void>(name), static_cast<void>(capabilities);
  return no_keys(address);
#endif
}

}  // namespace lccfs
