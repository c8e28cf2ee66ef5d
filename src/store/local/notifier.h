// SPDX-License-Identifier: LGPL-2.1-or-later
// The asking half of a notify: watch_server.h is the other.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "lccfs/object_store.h"
#include "store/local/notify_frames.h"

namespace lccfs::local {

/// Asks these clients at once, and returns when all have answered or the time is up. Who is dead is none of them.
NotifyReply ask_clients(int clients, const std::vector<std::string>& ids, const NotifyQuestion& question,
                        std::chrono::milliseconds timeout);

}  // namespace lccfs::local
