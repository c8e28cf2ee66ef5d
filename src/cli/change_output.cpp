// SPDX-License-Identifier: LGPL-2.1-or-later
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace lccfs::cli {
namespace {

std::string place_text(const std::string& volume) { return "volume at " + printable(volume); }

std::string mount_text(const InstanceInfo& client) {
  return printable(client.mount_id) + " on " + printable(client.host) + " (client " + std::to_string(client.number) +
         ", pid " + std::to_string(client.pid) + ")";
}

}  // namespace

std::string made_as_text(const std::string& volume) { return "made a " + place_text(volume) + "\n"; }

std::string made_as_json(const std::string& uuid, const MakeVolumeOptions& options) {
  const nlohmann::ordered_json json = {{"uuid", uuid},
                                       {"label", options.label},
                                       {"object_size_bytes", options.object_size_bytes},
                                       {"data_pool", options.data_pool},
                                       {"grace_seconds", options.grace_seconds},
                                       {"to_be_loaded", options.to_be_loaded}};
  return json_page(json);
}

std::string upgrade_as_text(const Upgraded& upgraded, bool dry_run, const std::string& volume) {
  if (upgraded.features.empty())
    return "nothing to do: the " + place_text(volume) + " has all features that this version knows\n";
  std::string names;
  for (const auto& name : upgraded.features) add_word(names, name);
  std::string mounts;
  for (const auto& client : upgraded.local_locks) add_word(mounts, mount_text(client));
  if (!mounts.empty()) mounts = "; then unmount and mount these again, they keep their locks to themselves: " + mounts;
  return (dry_run ? "would upgrade the " : "upgraded the ") + place_text(volume) + ": " + names + mounts + "\n";
}

std::string upgrade_as_json(const Upgraded& upgraded, bool dry_run) {
  const nlohmann::ordered_json json = {{"upgraded", !dry_run && !upgraded.features.empty()},
                                       {"features", upgraded.features},
                                       {"local_locks", clients_json(upgraded.local_locks)}};
  return json_page(json);
}

std::string loaded_as_text(const survey::Loaded& loaded, const std::string& volume) {
  auto text = "loaded " + count_text(loaded.inodes) + " inodes into the " + place_text(volume) + "\n";
  if (loaded.data_objects == 0) return text;
  return text + "there are " + count_text(loaded.data_objects) +
         " data objects: run lccfs-fsck --repair before anything mounts the volume\n";
}

std::string loaded_as_json(const survey::Loaded& loaded) {
  const nlohmann::ordered_json json = {{"inodes", loaded.inodes},
                                       {"left_out", loaded.left_out},
                                       {"names_left_out", loaded.names_left_out},
                                       {"without_name", loaded.without_name},
                                       {"data_objects", loaded.data_objects}};
  return json_page(json);
}

}  // namespace lccfs::cli
