// SPDX-License-Identifier: LGPL-2.1-or-later
// Keys of clients: what they must permit, and making them. For volumes in Ceph pools.
#pragma once

#include <string>

#include "lccfs/result.h"
#include "lccfs/volume_address.h"

namespace lccfs {

/// As `ceph auth` takes them.
struct Capabilities {
  std::string mon, osd;
};

enum class Access { read_write, read_only };

/// The least that a client of the volume at `address` needs; `data_pool`: its data pool, if it has one. Connects, as the
/// client that the address names: the pools must be there. unsupported: a local volume.
Result<Capabilities> needed_capabilities(const VolumeAddress& address, const std::string& data_pool, Access access);

/// Makes the key of client.NAME (`name`), if the cluster permits that to the client that `address` names, and answers
/// the text of its keyring. One that is there with the same capabilities is left as it is.
Result<std::string> make_key(const VolumeAddress& address, const std::string& name, const Capabilities& capabilities);

}  // namespace lccfs
