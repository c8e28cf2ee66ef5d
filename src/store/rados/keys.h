// SPDX-License-Identifier: LGPL-2.1-or-later
// Keys of clients on the cluster. Each function connects for itself.
#pragma once

#include "lccfs/access.h"

namespace lccfs::rados {

Result<Capabilities> needed_capabilities(const VolumeAddress& address, const std::string& data_pool, Access access);
Result<std::string> make_key(const VolumeAddress& address, const std::string& name, const Capabilities& capabilities);

}  // namespace lccfs::rados
