// SPDX-License-Identifier: LGPL-2.1-or-later
#include <ctime>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "format/features.h"

namespace lccfs::cli {

std::string utc_text(std::int64_t seconds, const std::string& fraction) {
  const std::time_t time = seconds;
  std::tm parts = {};
  if (gmtime_r(&time, &parts) == nullptr) return std::to_string(seconds) + " s since 1970";
  std::ostringstream text;
  text << std::put_time(&parts, "%Y-%m-%d %H:%M:%S") << fraction << " UTC";
  return text.str();
}

namespace {

std::string mask_text(format::FeatureMask mask, std::uint64_t bits) {
  std::ostringstream text;
  text << "0x" << std::hex << bits;
  if (bits != 0) text << " (" << format::feature_names(mask, bits) << ")";
  return text.str();
}

std::string feature_text(const VolumeInfo& info) {
  using format::SuperRecord;
  return "compat " + mask_text(&SuperRecord::compat, info.compat) + ", ro-compat " +
         mask_text(&SuperRecord::ro_compat, info.ro_compat) + ", incompat " +
         mask_text(&SuperRecord::incompat, info.incompat);
}

/// Those that have a name.
nlohmann::ordered_json names_json(const VolumeInfo& info) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  format::SuperRecord super;
  super.compat = info.compat;
  super.ro_compat = info.ro_compat;
  super.incompat = info.incompat;
  for (const auto& feature : format::all_features) {
    if (feature.is_in(super)) names.push_back(feature.name);
  }
  return names;
}

/// By this host's clock, which may be slow against that of the host that logged the item.
std::string age_text(std::int64_t since_seconds, std::int64_t now_seconds) {
  const auto age = static_cast<std::uint64_t>(now_seconds) - static_cast<std::uint64_t>(since_seconds);
  return std::to_string(since_seconds < now_seconds ? age : 0) + " s";
}

/// One look is no proof that a client is gone: "not seen" may be back in a moment.
std::string state_text(const InstanceInfo& one) {
  if (one.presence == Presence::absent) return one.state + ", not seen now";
  if (one.presence == Presence::dead) return one.state + " by its record, but dead";
  return one.is_live && !one.presence ? one.state + ", not known whether it is there" : one.state;
}

nlohmann::ordered_json presence_json(const std::optional<Presence>& presence) {
  if (!presence) return nullptr;
  if (*presence == Presence::watching) return "watching";
  return *presence == Presence::absent ? "absent" : "dead";
}

nlohmann::ordered_json instance_json(const InstanceInfo& one) {
  return {{"number", one.number},
          {"state", one.state},
          {"presence", presence_json(one.presence)},
          {"host", printable(one.host)},
          {"pid", one.pid},
          {"since", one.since_seconds},
          {"version", printable(one.version)},
          {"mount_id", printable(one.mount_id)}};
}

std::string backlog_text(const VolumeInfo& info, std::int64_t now_seconds) {
  if (!info.backlog_not_known.empty()) return "not known: " + printable(info.backlog_not_known);
  const auto& backlog = info.backlog;
  std::string text = count_text(backlog.items) + " items";
  if (backlog.oldest_seconds) text += ", the oldest " + age_text(*backlog.oldest_seconds, now_seconds) + " old";
  const std::string more = backlog.is_more ? "at least " : "";
  return text + "; " + more + count_text(backlog.inodes) + " inodes, " + size_text(backlog.bytes) + " to be reclaimed";
}

}  // namespace

nlohmann::ordered_json clients_json(const std::vector<InstanceInfo>& clients) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const InstanceInfo& one : clients) json.push_back(instance_json(one));
  return json;
}

std::string info_as_text(const VolumeInfo& info, std::int64_t now_seconds) {
  std::ostringstream text;
  const auto line = [&text](const char* name, const auto& value) {
    text << std::left << std::setw(16) << name << value << "\n";
  };
  line("uuid", info.uuid);
  if (!info.label.empty()) line("label", printable(info.label));
  line("made", utc_text(info.birth_seconds));
  line("format version", info.format_version);
  line("features", feature_text(info));
  line("object size", size_text(info.object_size_bytes));
  if (!info.data_pool.empty()) line("data pool", printable(info.data_pool));
  line("grace period", std::to_string(info.grace_seconds) + " s");
  line("numbers used", info.numbers_used);
  line("space",
       size_text(info.capacity.total_bytes) + " in all, " + size_text(info.capacity.available_bytes) + " free");
  line("objects", info.capacity.objects);
  line("backlog", backlog_text(info, now_seconds));
  line("instances", info.instances.size());
  for (const InstanceInfo& one : info.instances) text << "  " << client_as_text(one) << "\n";
  return text.str();
}

std::string info_as_json(const VolumeInfo& info) {
  nlohmann::ordered_json backlog = {{"items", info.backlog.items},
                                    {"oldest", nullptr},
                                    {"inodes", info.backlog.inodes},
                                    {"bytes", info.backlog.bytes},
                                    {"more", info.backlog.is_more}};
  if (info.backlog.oldest_seconds) backlog["oldest"] = *info.backlog.oldest_seconds;
  if (!info.backlog_not_known.empty()) backlog = nullptr;
  const nlohmann::ordered_json json = {{"uuid", info.uuid},
                                       {"label", info.label},
                                       {"birth", info.birth_seconds},
                                       {"format_version", info.format_version},
                                       {"features",
                                        {{"compat", info.compat},
                                         {"ro_compat", info.ro_compat},
                                         {"incompat", info.incompat},
                                         {"names", names_json(info)}}},
                                       {"object_size_bytes", info.object_size_bytes},
                                       {"data_pool", info.data_pool},
                                       {"grace_seconds", info.grace_seconds},
                                       {"numbers_used", info.numbers_used},
                                       {"total_bytes", info.capacity.total_bytes},
                                       {"available_bytes", info.capacity.available_bytes},
                                       {"objects", info.capacity.objects},
                                       {"backlog", backlog},
                                       {"instances", clients_json(info.instances)}};
  return json_page(json);
}

std::string client_as_text(const InstanceInfo& client) {
  return std::to_string(client.number) + " " + printable(state_text(client)) + ": pid " + std::to_string(client.pid) +
         " on " + printable(client.host) + " since " + utc_text(client.since_seconds) + ", version " +
         printable(client.version) + ", " + (client.mount_id.empty() ? "no mount" : printable(client.mount_id));
}

std::string clients_as_json(const std::vector<InstanceInfo>& clients) { return json_page(clients_json(clients)); }

std::string evicted_as_text(const InstanceInfo& client) {
  return (client.is_live ? "evicted " : "nothing to do: ") + client_as_text(client) + "\n";
}

std::string evicted_as_json(const InstanceInfo& client) {
  const nlohmann::ordered_json json = {{"evicted", client.is_live}, {"client", instance_json(client)}};
  return json_page(json);
}

}  // namespace lccfs::cli
