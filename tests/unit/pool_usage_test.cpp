// SPDX-License-Identifier: LGPL-2.1-or-later
// What `ceph df detail` says of a volume's pools.
#include "store/rados/pool_usage.h"

#include "support/catch.h"

namespace lccfs::rados {
namespace {

constexpr std::int64_t other = 1, metadata = 2, data = 3;

std::string pool(std::int64_t id, const std::string& stats) {
  return R"({"name": "p", "id": )" + std::to_string(id) + R"(, "stats": {)" + stats + "}}";
}

/// Of three pools, with what is said of the metadata and of the data pool.
std::string df(const std::string& of_metadata, const std::string& of_data) {
  return R"({"stats": {}, "pools": [)" + pool(other, R"("stored": 1, "objects": 1, "max_avail": 1)") + "," +
         pool(metadata, of_metadata) + "," + pool(data, of_data) + "]}";
}

constexpr const char* plain_metadata = R"("stored": 10, "objects": 4, "max_avail": 90)";
constexpr const char* plain_data = R"("stored": 1000, "objects": 7, "max_avail": 9000)";

Capacity needed(const std::optional<Capacity>& capacity) {
  REQUIRE(capacity);
  return *capacity;
}

}  // namespace

TEST_CASE("a volume in two pools has the bytes of each, and the objects of both") {
  const auto capacity = needed(capacity_of_pools(df(plain_metadata, plain_data), data, metadata));
  CHECK((capacity.total_bytes == 10'000 && capacity.available_bytes == 9'000 && capacity.objects == 11));
  CHECK((capacity.metadata_total_bytes == 100 && capacity.metadata_available_bytes == 90));
  CHECK_FALSE(capacity.quota);
}

TEST_CASE("a volume in one pool has its bytes and objects once") {
  const auto capacity = needed(capacity_of_pools(df(plain_metadata, plain_data), data, data));
  CHECK((capacity.available_bytes == 9'000 && capacity.metadata_available_bytes == 9'000 && capacity.objects == 7));
}

TEST_CASE("a quota of bytes bounds what is available, also where it is exceeded") {
  const auto with = [](const char* quota) { return std::string(plain_data) + R"(, "quota_bytes": )" + quota; };
  CHECK(needed(capacity_of_pools(df(plain_metadata, with("3000")), data, metadata)).available_bytes == 2'000);
  CHECK(needed(capacity_of_pools(df(plain_metadata, with("999")), data, metadata)).available_bytes == 0);
  CHECK(needed(capacity_of_pools(df(plain_metadata, with("0")), data, metadata)).available_bytes == 9'000);
  CHECK(needed(capacity_of_pools(df(with("3000"), plain_data), data, metadata)).metadata_available_bytes == 2'000);
}

TEST_CASE("of quotas of objects that with the fewest left counts") {
  const auto available = [](const char* of_metadata, const char* of_data) {
    const auto pools = df(std::string(plain_metadata) + R"(, "quota_objects": )" + of_metadata,
                          std::string(plain_data) + R"(, "quota_objects": )" + of_data);
    const auto quota = needed(capacity_of_pools(pools, data, metadata)).quota;
    REQUIRE(quota);
    return std::pair(quota->most, quota->available);
  };
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  CHECK(available("100", "0") == Pair(100, 96));
  CHECK(available("0", "100") == Pair(100, 93));
  CHECK(available("100", "90") == Pair(90, 83));
  CHECK(available("50", "90") == Pair(50, 46));
  CHECK(available("100", "5") == Pair(5, 0));
}

TEST_CASE("what is no such answer says nothing of pools") {
  for (const char* text : {"", "{}", R"({"pools": 1})", R"({"pools": [{"id": 3}]})"}) {
    CHECK_FALSE(capacity_of_pools(text, data, data));
  }
  CHECK_FALSE(capacity_of_pools(df(plain_metadata, plain_data), 99, metadata));
}

}  // namespace lccfs::rados
