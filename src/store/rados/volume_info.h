// SPDX-License-Identifier: LGPL-2.1-or-later
// What is in the pools, and how much more fits.
#pragma once

#include <string>
#include <vector>

#include "lccfs/object_store.h"
#include "store/rados/connection.h"

namespace lccfs::rados {

Result<ListPage> list(Connection& connection, const std::string& cursor);
std::vector<std::string> list_starts(Connection& connection, unsigned parts);
Result<Capacity> capacity(Connection& connection);

}  // namespace lccfs::rados
