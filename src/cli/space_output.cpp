// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.h"
#include "cli/output.h"

namespace lccfs::cli {
namespace {

using survey::DirectoryUsage;

constexpr std::uint64_t kib = 1024;

std::uint64_t used_bytes(const Capacity& capacity) {
  return capacity.total_bytes - std::min(capacity.total_bytes, capacity.available_bytes);
}

std::string path_of(const std::vector<DirectoryUsage>& directories, std::size_t index, const std::string& first) {
  std::vector<const std::string*> names;
  for (; index != 0; index = directories[index].parent) names.push_back(&directories[index].name);
  std::string path = first;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (!path.ends_with('/')) path += '/';
    path += **name;
  }
  return path;
}

/// Each directory after those below it, and these in the order in which they were met.
std::vector<std::size_t> bottom_up(const std::vector<DirectoryUsage>& directories, bool summary) {
  if (summary) return {0};
  std::vector<std::vector<std::size_t>> below(directories.size());
  for (std::size_t i = 1; i < directories.size(); ++i) below[directories[i].parent].push_back(i);
  std::vector<std::size_t> order, line{0};
  while (!line.empty()) {  // top down, the last ones first
    order.push_back(line.back());
    line.pop_back();
    line.insert(line.end(), below[order.back()].begin(), below[order.back()].end());
  }
  std::ranges::reverse(order);
  return order;
}

nlohmann::ordered_json space_json(const std::string& path, const survey::Space& space) {
  return {{"path", printable(path)},
          {"bytes", space.bytes},
          {"apparent_bytes", space.apparent_bytes},
          {"inodes", space.inodes}};
}

}  // namespace

std::string df_as_text(const Capacity& capacity, const std::string& volume) {
  const auto used = used_bytes(capacity);
  // Without the sum of both, which may be beyond 64 bits.
  const double share =
      capacity.total_bytes == 0 ? 0 : static_cast<double>(used) * 100 / static_cast<double>(capacity.total_bytes);
  std::ostringstream text;
  text << "      size        used   available  use%       objects  volume\n";
  for (const auto bytes : {capacity.total_bytes, used, capacity.available_bytes})
    text << std::setw(10) << size_text(bytes) << "  ";
  text << std::setw(3) << std::ceil(share) << "%  " << std::setw(12) << count_text(capacity.objects) << "  "
       << printable(volume) << "\n";
  return text.str();
}

std::string df_as_json(const Capacity& capacity) {
  const nlohmann::ordered_json json = {{"total_bytes", capacity.total_bytes},
                                       {"used_bytes", used_bytes(capacity)},
                                       {"available_bytes", capacity.available_bytes},
                                       {"objects", capacity.objects}};
  return json_page(json);
}

std::string du_as_text(const std::vector<DirectoryUsage>& directories, const DuOutput& how) {
  std::string text;
  for (const auto i : bottom_up(directories, how.summary)) {
    const auto bytes = directories[i].space.bytes;
    text += how.human ? size_text(bytes) : std::to_string((bytes + kib - 1) / kib);
    text += "\t" + printable(path_of(directories, i, how.path)) + "\n";
  }
  return text;
}

std::string du_as_json(const std::vector<DirectoryUsage>& directories, const DuOutput& how) {
  auto json = space_json(how.path, directories.front().space);
  if (!how.summary) {
    json["directories"] = nlohmann::ordered_json::array();
    for (const auto i : bottom_up(directories, false))
      json["directories"].push_back(space_json(path_of(directories, i, how.path), directories[i].space));
  }
  return json_page(json);
}

}  // namespace lccfs::cli
