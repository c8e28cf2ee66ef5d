// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gc/report.h"

#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.h"

namespace lccfs::gc {

using reclaim::OtherInstance;
using reclaim::PassReport;

namespace {

using Json = nlohmann::ordered_json;

double seconds_of(const PassReport& report) { return std::chrono::duration<double>(report.took).count(); }

std::string name_of(const OtherInstance& instance) {
  return "instance " + std::to_string(instance.id.value) + " (pid " + std::to_string(instance.pid) + " on " +
         printable(instance.host) + ")";
}

/// "3 data objects", or nothing.
void add_part(std::ostringstream& text, std::uint64_t count, const char* what) {
  if (count != 0) text << ", " << count_text(count) << " " << what;
}

/// " (instances 3 7)", or nothing.
std::string numbers_of(const std::vector<OtherInstance>& instances) {
  std::string numbers;
  for (const OtherInstance& one : instances) numbers += " " + std::to_string(one.id.value);
  return numbers.empty() ? "" : " (instances" + numbers + ")";
}

/// What else there is to say, most passes nothing.
std::string particulars(const PassReport& report) {
  std::ostringstream text;
  add_part(text, report.names_removed, "names removed");
  add_part(text, report.inodes_corrected, "inodes corrected");
  add_part(text, report.instances_removed, "former clients forgotten");
  add_part(text, report.open_elsewhere, "still open");
  add_part(text, report.gone.size(), "clients gone");
  text << numbers_of(report.gone);
  add_part(text, report.not_seen.size(), "clients not seen");
  add_part(text, report.silent.size(), "clients silent");
  add_part(text, report.damaged.size(), "objects damaged");
  add_part(text, report.refused, "inodes kept by the store");
  return text.str();
}

std::string removed_text(const PassReport& report) {
  return count_text(report.inodes_removed) + " inodes and " + count_text(report.data_objects_removed) +
         " data objects, " + size_text(report.bytes_freed);
}

Json as_json(const std::vector<OtherInstance>& instances) {
  Json array = Json::array();
  for (const OtherInstance& one : instances)
    array.push_back({{"instance", one.id.value}, {"host", one.host}, {"pid", one.pid}});
  return array;
}

}  // namespace

void add_pass(PassReport& total, const PassReport& next) {
  const PassReport before = std::move(total);
  total = next;  // what is left and silent is so by the last pass's word
  // What was damaged is not: a pass drops what led there.
  for (const auto& object : before.damaged) {
    if (std::ranges::find(total.damaged, object) == total.damaged.end()) total.damaged.push_back(object);
  }
  total.items_seen += before.items_done;
  total.items_done += before.items_done;
  total.inodes_removed += before.inodes_removed;
  total.data_objects_removed += before.data_objects_removed;
  total.bytes_freed += before.bytes_freed;
  total.names_removed += before.names_removed;
  total.inodes_corrected += before.inodes_corrected;
  total.instances_removed += before.instances_removed;
  total.gone.insert(total.gone.begin(), before.gone.begin(), before.gone.end());
  total.took += before.took;
}

std::string report_line(const PassReport& report) {
  std::ostringstream text;
  text << count_text(report.items_seen) << " items looked at, " << count_text(report.items_done) << " done, "
       << count_text(report.items_left) << " left; reclaimed " << removed_text(report) << particulars(report)
       << std::fixed << std::setprecision(1) << "; " << seconds_of(report) << " s";
  return text.str();
}

std::string dry_run_text(const PassReport& report) {
  std::ostringstream text;
  text << count_text(report.items_seen) << " items, " << count_text(report.items_left)
       << " of them to be left for later; would reclaim " << removed_text(report) << particulars(report) << "\n";
  for (const OtherInstance& one : report.gone) text << "gone, would be fenced: " << name_of(one) << "\n";
  for (const OtherInstance& one : report.not_seen)
    text << "not seen now, would be fenced if that lasts a minute: " << name_of(one) << "\n";
  return text.str();
}

std::string report_as_json(const PassReport& report) {
  const Json json = {{"items_seen", report.items_seen},
                     {"items_done", report.items_done},
                     {"items_left", report.items_left},
                     {"inodes_removed", report.inodes_removed},
                     {"data_objects_removed", report.data_objects_removed},
                     {"bytes_freed", report.bytes_freed},
                     {"names_removed", report.names_removed},
                     {"inodes_corrected", report.inodes_corrected},
                     {"instances_removed", report.instances_removed},
                     {"open_elsewhere", report.open_elsewhere},
                     {"gone", as_json(report.gone)},
                     {"not_seen", as_json(report.not_seen)},
                     {"silent", as_json(report.silent)},
                     {"damaged", report.damaged},
                     {"refused", report.refused},
                     {"seconds", seconds_of(report)}};
  return json_page(json);
}

bool needs_a_hand(const PassReport& report) { return !report.damaged.empty() || report.refused != 0; }

std::vector<std::string> warnings_of(const PassReport& report) {
  std::vector<std::string> lines;
  lines.reserve(report.silent.size() + report.damaged.size() + 1);
  for (const OtherInstance& one : report.silent)
    lines.push_back(name_of(one) + " did not answer: nothing that depends on it was done");
  for (const std::string& line : report.damaged) lines.push_back(line + "; lccfs-fsck tells more");
  if (report.refused != 0)
    lines.push_back(report.refusal + ": the data of " + count_text(report.refused) + " inodes could not be removed");
  return lines;
}

}  // namespace lccfs::gc
