// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/pool_usage.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace lccfs::rados {
namespace {

struct PoolUsage {
  std::uint64_t stored_bytes = 0, available_bytes = 0, objects = 0;
  std::optional<ObjectQuota> quota;

  std::uint64_t total_bytes() const { return stored_bytes + available_bytes; }
};

/// How much is left of a quota; one may be exceeded.
std::uint64_t left_of(std::uint64_t quota, std::uint64_t used) { return quota - std::min(quota, used); }

PoolUsage usage_in(const nlohmann::json& stats) {
  PoolUsage usage;
  usage.stored_bytes = stats.at("stored").get<std::uint64_t>();
  usage.available_bytes = stats.at("max_avail").get<std::uint64_t>();
  usage.objects = stats.at("objects").get<std::uint64_t>();
  const auto quota_bytes = stats.value("quota_bytes", std::uint64_t{0});
  if (quota_bytes != 0)
    usage.available_bytes = std::min(usage.available_bytes, left_of(quota_bytes, usage.stored_bytes));
  const auto quota_objects = stats.value("quota_objects", std::uint64_t{0});
  if (quota_objects != 0) usage.quota = {quota_objects, left_of(quota_objects, usage.objects)};
  return usage;
}

std::optional<PoolUsage> find_usage(const std::string& df, std::int64_t pool) {
  try {
    const auto document = nlohmann::json::parse(df);
    for (const auto& entry : document.at("pools")) {
      if (entry.at("id").get<std::int64_t>() == pool) return usage_in(entry.at("stats"));
    }
  } catch (const nlohmann::json::exception&) {
  }
  return std::nullopt;
}

}  // namespace

std::optional<Capacity> capacity_of_pools(const std::string& df, std::int64_t data_pool, std::int64_t metadata_pool) {
  const auto data = find_usage(df, data_pool), metadata = find_usage(df, metadata_pool);
  if (!data || !metadata) return std::nullopt;
  Capacity capacity;
  capacity.total_bytes = data->total_bytes();
  capacity.available_bytes = data->available_bytes;
  capacity.metadata_total_bytes = metadata->total_bytes();
  capacity.metadata_available_bytes = metadata->available_bytes;
  capacity.objects = data->objects + (data_pool == metadata_pool ? 0 : metadata->objects);
  for (const auto& quota : {data->quota, metadata->quota}) {
    if (quota && (!capacity.quota || quota->available < capacity.quota->available)) capacity.quota = quota;
  }
  return capacity;
}

}  // namespace lccfs::rados
