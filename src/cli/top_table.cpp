// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/top_table.h"

#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.h"

namespace lccfs::cli {
namespace {

constexpr double bytes_in_mib = 1 << 20;
constexpr const char* took = "lccfs_operation_duration_seconds";
constexpr const char* directory_took = "lccfs_directory_duration_seconds";

/// How much the counters of two looks differ, in a second. One that has begun anew meanwhile counts from zero.
class Rates {
 public:
  Rates(const MetricsPage& before, const MetricsPage& after, std::chrono::nanoseconds between)
      : before_(before), after_(after), seconds_(std::chrono::duration<double>(between).count()) {}

  double of(const std::string& name, const Labels& labels = {}) const {
    const double now = after_.sum(name, labels), then = before_.sum(name, labels);
    return seconds_ > 0 ? (now < then ? now : now - then) / seconds_ : 0;
  }
  std::optional<double> mean_ms(const std::string& family, const Labels& labels) const {
    const double count = of(family + "_count", labels);
    if (count <= 0) return std::nullopt;
    return of(family + "_sum", labels) / count * 1000;
  }

 private:
  const MetricsPage& before_;
  const MetricsPage& after_;
  const double seconds_;
};

TopRow mount_row(const Rates& rates, const MetricsPage& page) {
  TopRow row;
  row.name = page.label("lccfs_info", "mountpoint");
  if (row.name.empty()) row.name = page.label("lccfs_info", "program") + " " + page.label("lccfs_info", "volume");
  row.reads = rates.of(std::string(took) + "_count", {{"operation", "read"}});
  row.writes = rates.of(std::string(took) + "_count", {{"operation", "write"}});
  row.others = std::max(0.0, rates.of(std::string(took) + "_count") - row.reads - row.writes);
  row.read_bytes = rates.of("lccfs_operation_read_bytes_total");
  row.written_bytes = rates.of("lccfs_operation_written_bytes_total");
  row.read_ms = rates.mean_ms(took, {{"operation", "read"}});
  row.write_ms = rates.mean_ms(took, {{"operation", "write"}});
  row.in_flight = page.sum("lccfs_operation_in_flight");
  row.slow = page.sum("lccfs_operation_slow_total") + page.sum("lccfs_store_operation_slow_total");
  return row;
}

TopRow directory_row(const Rates& rates, const std::string& name) {
  const auto of = [&](const char* work) { return Labels{{"directory", name}, {"work", work}}; };
  TopRow row;
  row.name = name;
  const std::string count = std::string(directory_took) + "_count";
  row.reads = rates.of(count, of("read"));
  row.writes = rates.of(count, of("write"));
  row.others = rates.of(count, of("other"));
  row.read_bytes = rates.of("lccfs_directory_read_bytes_total", {{"directory", name}});
  row.written_bytes = rates.of("lccfs_directory_written_bytes_total", {{"directory", name}});
  row.read_ms = rates.mean_ms(directory_took, of("read"));
  row.write_ms = rates.mean_ms(directory_took, of("write"));
  return row;
}

std::string number(double value, int decimals) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << value;
  return text.str();
}

std::string number(const std::optional<double>& value, int decimals) { return value ? number(*value, decimals) : "-"; }

constexpr std::size_t name_width = 30;

/// The end of a long name tells more than its beginning. It begins with a whole character.
std::string name_cell(const std::string& name) {
  std::string shown = printable(name);
  if (shown.size() <= name_width) return shown;
  const auto continues = [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; };
  std::size_t from = shown.size() - name_width + 3;
  while (from < shown.size() && continues(shown[from])) ++from;
  return "..." + shown.substr(from);
}

void add_line(std::ostringstream& text, const std::string& name, const std::vector<std::string>& cells) {
  text << std::left << std::setw(name_width) << name << std::right;
  for (const std::string& cell : cells) text << std::setw(9) << cell;
}

constexpr std::size_t columns_of_directories = 7;

void add_header(std::ostringstream& text, const char* first, Colours colours, std::size_t columns) {
  std::vector<std::string> titles = {"READ/s",  "WRITE/s",  "OTHER/s",  "RD MiB/s", "WR MiB/s",
                                     "READ ms", "WRITE ms", "INFLIGHT", "SLOW"};
  titles.resize(std::min(columns, titles.size()));
  if (colours == Colours::terminal) text << "\x1b[7m";
  add_line(text, first, titles);
  text << (colours == Colours::terminal ? "\x1b[0m" : "") << "\n";
}

void add_row(std::ostringstream& text, const TopRow& row, Colours colours) {
  const bool alarm = colours == Colours::terminal && row.slow > 0;
  if (alarm) text << "\x1b[31m";
  add_line(
      text, name_cell(row.name),
      {number(row.reads, 0), number(row.writes, 0), number(row.others, 0), number(row.read_bytes / bytes_in_mib, 1),
       number(row.written_bytes / bytes_in_mib, 1), number(row.read_ms, 2), number(row.write_ms, 2),
       row.in_flight ? number(*row.in_flight, 0) : "", row.in_flight ? number(row.slow, 0) : ""});
  text << (alarm ? "\x1b[0m" : "") << "\n";
}

nlohmann::ordered_json json_of(const TopRow& row) {
  nlohmann::ordered_json json = {{"name", row.name},
                                 {"reads_per_second", row.reads},
                                 {"writes_per_second", row.writes},
                                 {"others_per_second", row.others},
                                 {"read_bytes_per_second", row.read_bytes},
                                 {"written_bytes_per_second", row.written_bytes},
                                 {"read_milliseconds", nullptr},
                                 {"write_milliseconds", nullptr}};
  if (row.read_ms) json["read_milliseconds"] = *row.read_ms;
  if (row.write_ms) json["write_milliseconds"] = *row.write_ms;
  if (!row.in_flight) return json;
  json["in_flight"] = *row.in_flight;
  json["slow"] = row.slow;
  return json;
}

nlohmann::ordered_json json_of(const std::vector<TopRow>& rows) {
  auto json = nlohmann::ordered_json::array();
  for (const TopRow& row : rows) json.push_back(json_of(row));
  return json;
}

}  // namespace

void add_mount(TopTable& table, const MetricsPage& before, const MetricsPage& after, std::chrono::nanoseconds between) {
  const Rates rates(before, after, between);
  table.mounts.push_back(mount_row(rates, after));
  for (const std::string& name : after.values_of(std::string(directory_took) + "_count", "directory")) {
    auto row = directory_row(rates, name);
    if (row.operations() > 0) table.directories.push_back(std::move(row));
  }
  std::ranges::stable_sort(table.directories, std::greater(), &TopRow::operations);
}

std::string top_as_text(const TopTable& table, Colours colours, std::size_t most_lines) {
  std::ostringstream text;
  add_header(text, "MOUNT", colours, columns_of_directories + 2);
  for (const TopRow& row : table.mounts) add_row(text, row, colours);
  add_header(text, "DIRECTORY", colours, columns_of_directories);
  std::size_t lines = table.mounts.size() + 2;
  for (const TopRow& row : table.directories) {
    if (most_lines != 0 && ++lines > most_lines) break;
    add_row(text, row, colours);
  }
  return text.str();
}

nlohmann::ordered_json top_as_json(const TopTable& table) {
  return {{"mounts", json_of(table.mounts)}, {"directories", json_of(table.directories)}};
}

}  // namespace lccfs::cli
