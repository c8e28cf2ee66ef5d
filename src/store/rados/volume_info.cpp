// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/volume_info.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "store/rados/errors.h"
#include "store/rados/pool_usage.h"

namespace lccfs::rados {
namespace {

constexpr std::size_t names_per_page = 1000;

// A cursor: which pool ('m'etadata or 'd'ata), then librados' own cursor (empty: the beginning). Of a part of a pool a
// space follows, which librados escapes in its own, and the cursor where that part ends.
constexpr char metadata_pool = 'm';
constexpr char data_pool = 'd';
constexpr char part_end = ' ';

/// The monitor learns of a new pool's usage some seconds late: until then the cluster's is the best there is.
Result<Capacity> capacity_of_cluster(Connection& connection) {
  librados::cluster_stat_t stat{};
  const int status = connection.cluster().cluster_stat(stat);
  if (status < 0) return std::unexpected(to_error(status, "capacity of the cluster", Effect::reads));
  const std::uint64_t total_bytes = stat.kb * 1024, available_bytes = stat.kb_avail * 1024;
  return Capacity{total_bytes, available_bytes, stat.num_objects, total_bytes, available_bytes};
}

}  // namespace

Result<ListPage> list(Connection& connection, const std::string& cursor) {
  const bool in_data = !cursor.empty() && cursor.front() == data_pool;
  librados::IoCtx& pool = in_data ? connection.data() : connection.metadata();
  librados::ObjectCursor start = pool.object_list_begin(), end = pool.object_list_end();
  const auto part = cursor.find(part_end);
  const bool pool_read = cursor.empty() || cursor.front() == metadata_pool || in_data;
  const bool start_read = cursor.size() < 2 || start.from_str(cursor.substr(1, part - 1));
  if (!pool_read || !start_read || (part != std::string::npos && !end.from_str(cursor.substr(part + 1))))
    return failure(ErrorCode::invalid, "not a cursor of a listing: " + cursor);
  std::vector<librados::ObjectItem> items;
  librados::ObjectCursor next;
  const int status = pool.object_list(start, end, names_per_page, {}, &items, &next);
  if (status < 0) return std::unexpected(to_error(status, "listing of pool " + pool.get_pool_name(), Effect::reads));
  ListPage page;
  for (librados::ObjectItem& item : items) page.names.push_back(std::move(item.oid));
  if (next < end) {
    page.next_cursor = (in_data ? data_pool : metadata_pool) + next.to_str();
    if (part != std::string::npos) page.next_cursor += cursor.substr(part);
  } else if (part == std::string::npos && !in_data && connection.has_data_pool()) {
    page.next_cursor = data_pool;
  }
  return page;
}

std::vector<std::string> list_starts(Connection& connection, unsigned parts) {
  std::vector<std::string> starts;
  const auto add = [&](librados::IoCtx& pool, char letter) {
    for (unsigned part = 0; part < std::max(parts, 1U); ++part) {
      librados::ObjectCursor start, end;
      pool.object_list_slice(pool.object_list_begin(), pool.object_list_end(), part, std::max(parts, 1U), &start, &end);
      starts.push_back(letter + start.to_str() + part_end + end.to_str());
    }
  };
  add(connection.metadata(), metadata_pool);
  if (connection.has_data_pool()) add(connection.data(), data_pool);
  return starts;
}

Result<Capacity> capacity(Connection& connection) {
  librados::bufferlist answer;
  std::string message;
  const int status = connection.cluster().mon_command(R"({"prefix": "df", "detail": "detail", "format": "json"})", {},
                                                      &answer, &message);
  if (status < 0) return std::unexpected(to_error(status, "capacity of the cluster", Effect::reads));
  const auto pools = capacity_of_pools(answer.to_str(), connection.data().get_id(), connection.metadata().get_id());
  return pools ? *pools : capacity_of_cluster(connection);
}

}  // namespace lccfs::rados
