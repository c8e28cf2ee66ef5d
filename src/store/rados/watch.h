// SPDX-License-Identifier: LGPL-2.1-or-later
// Watches and notifies.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lccfs/object_store.h"
#include "store/rados/connection.h"
#include "store/rados/step.h"

namespace lccfs::rados {

/// The connection must outlive the watch.
Result<std::unique_ptr<Watch>> watch(Connection& connection, const std::string& object,
                                     std::shared_ptr<WatchHandler> handler);
Result<NotifyReply> notify(Connection& connection, InFlight& in_flight, const std::string& object, const Bytes& payload,
                           std::chrono::milliseconds timeout);

}  // namespace lccfs::rados
