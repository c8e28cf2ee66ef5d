// SPDX-License-Identifier: LGPL-2.1-or-later
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/output.h"

namespace lccfs::cli {
namespace {

std::string place_text(const std::string& volume) { return "volume at " + printable(volume); }

}  // namespace

std::string made_as_text(const std::string& volume) { return "made a " + place_text(volume) + "\n"; }

std::string made_as_json(const std::string& uuid, const MakeVolumeOptions& options) {
  const nlohmann::ordered_json json = {{"uuid", uuid},
                                       {"label", options.label},
                                       {"object_size_bytes", options.object_size_bytes},
                                       {"data_pool", options.data_pool},
                                       {"grace_seconds", options.grace_seconds},
                                       {"to_be_loaded", options.to_be_loaded}};
  return json_text(json, 2) + "\n";
}

std::string upgrade_as_text(const std::vector<std::string>& features, bool dry_run, const std::string& volume) {
  if (features.empty())
    return "nothing to do: the " + place_text(volume) + " has all features that this version knows\n";
  std::string names;
  for (const auto& name : features) add_word(names, name);
  return (dry_run ? "would upgrade the " : "upgraded the ") + place_text(volume) + ": " + names + "\n";
}

std::string upgrade_as_json(const std::vector<std::string>& features, bool dry_run) {
  const nlohmann::ordered_json json = {{"upgraded", !dry_run && !features.empty()}, {"features", features}};
  return json_text(json, 2) + "\n";
}

std::string loaded_as_text(const survey::Loaded& loaded, const std::string& volume) {
  return "loaded " + count_text(loaded.inodes) + " inodes into the " + place_text(volume) + "\n";
}

std::string loaded_as_json(const survey::Loaded& loaded) {
  const nlohmann::ordered_json json = {{"inodes", loaded.inodes}, {"left_out", loaded.left_out}};
  return json_text(json, 2) + "\n";
}

}  // namespace lccfs::cli
