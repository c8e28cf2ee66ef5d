// SPDX-License-Identifier: LGPL-2.1-or-later
// The commands of lccfs.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/place.h"
#include "lccfs/volume.h"
#include "options/command_line.h"

namespace lccfs::cli {

/// Somebody waits for these commands: every step of theirs gives up.
inline constexpr std::chrono::seconds step_timeout{30};

// What most commands are told.
struct OnVolume {
  VolumeAddress address;
  bool json = false;
};
struct OnPlace {
  Place place;
  bool json = false;
};

// Each adds one command: its help, its options, and what it does.
void add_mkfs(options::CommandLine& program);
void add_info(options::CommandLine& program);
void add_clients(options::CommandLine& program);
void add_evict(options::CommandLine& program);
void add_auth(options::CommandLine& program);
void add_upgrade(options::CommandLine& program);
void add_df(options::CommandLine& program);
void add_du(options::CommandLine& program);
void add_stat(options::CommandLine& program);
void add_dump(options::CommandLine& program);
void add_load(options::CommandLine& program);
void add_doctor(options::CommandLine& program);
void add_top(options::CommandLine& program);
void add_log_level(options::CommandLine& program);

/// --json, where nothing else is said of the output.
inline void add_json(options::CommandLine& line, bool& json) {
  line.group("Output");
  line.flag("--json", json, "as JSON, for programs");
}

/// A new client of the volume's store.
using OpenStore = std::function<Result<std::shared_ptr<ObjectStore>>(const StoreOptions& options)>;
/// Bars the client. Looking for it gives up. What comes then may have been applied already, so it waits for the store for
/// as long as that takes, and what has not been answered is named in the log meanwhile.
Result<InstanceInfo> evict(const OpenStore& open, Clock& clock, std::uint64_t client);

// What `info` prints. Ages are told as of `now_seconds`.
std::string info_as_text(const VolumeInfo& info, std::int64_t now_seconds);
std::string info_as_json(const VolumeInfo& info);
// What `clients` prints: a line, without its end; and all of them.
std::string client_as_text(const InstanceInfo& client);
std::string clients_as_json(const std::vector<InstanceInfo>& clients);
nlohmann::ordered_json clients_json(const std::vector<InstanceInfo>& clients);
// What `evict` prints; `client` is what it was before.
std::string evicted_as_text(const InstanceInfo& client);
std::string evicted_as_json(const InstanceInfo& client);

}  // namespace lccfs::cli
