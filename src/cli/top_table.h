// SPDX-License-Identifier: LGPL-2.1-or-later
// What `lccfs top` shows. Pure functions.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/metrics_page.h"

namespace lccfs::cli {

/// What one thing has done in a second, on average.
struct TopRow {
  std::string name;
  double reads = 0, writes = 0, others = 0;
  double read_bytes = 0, written_bytes = 0;
  std::optional<double> read_ms, write_ms;  ///< how long one took; nullopt: there was none
  std::optional<double> in_flight;          ///< at this moment, of a mount
  double slow = 0;                          ///< since the mount began

  double operations() const { return reads + writes + others; }
};

struct TopTable {
  std::vector<TopRow> mounts, directories;
};

/// Adds a mount, and what its directories did between the two looks.
void add_mount(TopTable& table, const MetricsPage& before, const MetricsPage& after, std::chrono::nanoseconds between);

enum class Colours { none, terminal };
/// The busiest directories, those that did nothing left out; at most so many lines in all, 0: any number.
std::string top_as_text(const TopTable& table, Colours colours, std::size_t most_lines);
nlohmann::ordered_json top_as_json(const TopTable& table);

}  // namespace lccfs::cli
