// SPDX-License-Identifier: LGPL-2.1-or-later
// Watches.
#pragma once

#include <memory>
#include <string>

#include "lccfs/object_store.h"
#include "store/rados/connection.h"

namespace lccfs::rados {

/// The connection must outlive the watch.
Result<std::unique_ptr<Watch>> watch(Connection& connection, const std::string& object,
                                     std::shared_ptr<WatchHandler> handler);

}  // namespace lccfs::rados
