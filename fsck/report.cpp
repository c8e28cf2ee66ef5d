// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fsck/report.h"

#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.h"

namespace lccfs::fsck {

namespace {

double seconds_of(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }

std::string summary_line(const Summary& summary) {
  std::ostringstream text;
  const auto& check = summary.check;
  if (summary.complete || check.objects > 0) {
    text << check.objects << " objects: " << check.directories << " directories, " << check.other_inodes
         << " other inodes, " << check.data_objects << " data objects. ";
  }
  if (!summary.complete) text << "Not all was looked at: ";
  text << summary.repaired + summary.left << " findings, " << summary.repaired << " repaired, " << summary.left
       << " left, in " << std::fixed << std::setprecision(1) << seconds_of(summary.took) << " s";
  return text.str();
}

class TextReport final : public Report {
 public:
  explicit TextReport(std::ostream& out) : out_(out) {}
  void found(const check::Finding& finding) override { out_ << text_of(finding) << std::endl; }
  void dealt_with(const check::Finding& finding, const repair::Repair& repair) override {
    out_ << text_of(finding) << (repair.done ? ": repaired: " : ": left: ") << printable(repair.text) << std::endl;
  }
  void end(const Summary& summary) override { out_ << summary_line(summary) << std::endl; }

 private:
  std::ostream& out_;
};

class JsonReport final : public Report {
 public:
  explicit JsonReport(std::ostream& out) : out_(out) { out_ << "{\n  \"findings\": ["; }
  void found(const check::Finding& finding) override { add(as_json(finding)); }
  void dealt_with(const check::Finding& finding, const repair::Repair& repair) override {
    auto json = as_json(finding);
    json["repaired"] = repair.done;
    json["repair"] = printable(repair.text);
    add(json);
  }
  void end(const Summary& summary) override {
    const auto& check = summary.check;
    const nlohmann::ordered_json json = {{"complete", summary.complete},
                                         {"objects", check.objects},
                                         {"directories", check.directories},
                                         {"other_inodes", check.other_inodes},
                                         {"data_objects", check.data_objects},
                                         {"repaired", summary.repaired},
                                         {"left", summary.left},
                                         {"seconds", seconds_of(summary.took)}};
    out_ << (first_ ? "" : "\n  ") << "],\n  \"summary\": " << json_text(json) << "\n}" << std::endl;
  }

 private:
  static nlohmann::ordered_json as_json(const check::Finding& finding) {
    return {{"kind", describe(finding.kind)}, {"object", printable(finding.object)}, {"text", printable(finding.text)}};
  }
  void add(const nlohmann::ordered_json& json) {
    out_ << (first_ ? "\n    " : ",\n    ") << json_text(json);
    first_ = false;
  }

  std::ostream& out_;
  bool first_ = true;
};

}  // namespace

int exit_status(const Summary& summary) {
  return (summary.repaired > 0 ? exit_corrected : 0) + (summary.left > 0 ? exit_left : 0) +
         (summary.complete ? 0 : exit_operational);
}

std::uint64_t objects_expected(const VolumeAddress& address, const check::Progress& progress) {
  const bool shares_the_pool = address.local_directory.empty() && !address.pool_namespace.empty();
  return shares_the_pool ? 0 : progress.objects_expected;
}

std::unique_ptr<Report> text_report(std::ostream& out) { return std::make_unique<TextReport>(out); }
std::unique_ptr<Report> json_report(std::ostream& out) { return std::make_unique<JsonReport>(out); }

}  // namespace lccfs::fsck
