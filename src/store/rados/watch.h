// SPDX-License-Identifier: LGPL-2.1-or-later
// Watches, notifies, and lists of watchers.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lccfs/object_store.h"
#include "store/rados/connection.h"
#include "store/rados/fence.h"

namespace lccfs::rados {

/// The connection must outlive the watch.
Result<std::unique_ptr<Watch>> watch(Connection& connection, const std::string& object,
                                     std::shared_ptr<WatchHandler> handler);
Result<NotifyReply> notify(Connection& connection, const std::string& object, const Bytes& payload,
                           std::chrono::milliseconds timeout);
/// Notes all watchers, and their addresses.
Result<Presence> presence(Connection& connection, Witnesses& witnesses, const std::string& object,
                          const Bytes& identity);

}  // namespace lccfs::rados
