// SPDX-License-Identifier: LGPL-2.1-or-later
// What a victim of the fencing cases does, wherever it runs.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "conformance/conformance.h"
#include "lccfs/object_store.h"

namespace lccfs::conformance {

inline constexpr const char* victim_session = "Session.7";
inline constexpr std::array victim_metadata = {"Inode.71", "Inode.72", "Inode.73"};
inline constexpr std::array victim_data = {"Data.7.0", "Data.7.1", "Data.7.2"};
inline constexpr const char* victim_key = "n/1";

/// Makes and watches victim_session, then writes rising numbers into all of these objects, several steps in flight,
/// until one step fails or `stop` is set; returns when all are answered. `ready` is called once, when all have been
/// written. Returns the code that ended it.
std::string write_until_stopped(ObjectStore& store, const std::atomic<bool>& stop, std::function<void()> ready);

/// For stores that can fence one of several clients in a process: the victim is a thread with a client of its own.
std::unique_ptr<Victim> start_victim_thread(std::shared_ptr<ObjectStore> client);

/// For stores whose clients are fenced by process: `conformance_victim DIRECTORY` on the local store there.
std::unique_ptr<Victim> start_victim_process(const std::string& directory);

}  // namespace lccfs::conformance
