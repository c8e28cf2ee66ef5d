// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/check.h"

#include "check/rules.h"
#include "check/volume_scan.h"
#include "format/object_names.h"
#include "format/records.h"

namespace lccfs::check {

namespace {

/// What is wrong with Super itself is a finding, not our concern here.
Result<> find_data_pool(ObjectStore& store) {
  auto super = store.query({.object = format::super_object, .xattrs = true, .ranges = {}, .keys = {}});
  if (!super) return super.error().code == ErrorCode::not_found ? Result<>{} : std::unexpected(super.error());
  const auto record = format::decode<format::SuperRecord>(super->xattrs[format::xattr::super]);
  return record && !record->data_pool.empty() ? store.use_data_pool(record->data_pool) : Result<>{};
}

CheckReport report_of(const VolumeView& view) {
  CheckReport report;
  for (const auto& [ino, inode] : view.inodes)
    ++(inode.is(FileType::directory) ? report.directories : report.other_inodes);
  for (const auto& [ino, indexes] : view.data) report.data_objects += indexes.size();
  report.objects = view.inodes.size() + report.data_objects + view.queues.size() + 2;
  report.findings = view.findings.size();
  return report;
}

}  // namespace

Result<CheckReport> check_volume(ObjectStore& store, const CheckOptions&,
                                 const std::function<void(const Finding&)>& on_finding) {
  LCCFS_CHECK(find_data_pool(store));
  LCCFS_TRY(VolumeView view, scan_volume(store));
  check_numbers(view);
  check_fences(view);
  check_entries(view);
  check_reverse_keys(view);
  check_directories(view);
  check_back_pointers(view);
  check_queue(view);
  check_map(view);
  LCCFS_CHECK(check_tails(view, store));
  for (const Finding& finding : view.findings) on_finding(finding);
  return report_of(view);
}

Result<std::vector<Finding>> check_volume(ObjectStore& store) {
  std::vector<Finding> findings;
  LCCFS_CHECK(check_volume(store, {}, [&findings](const Finding& finding) { findings.push_back(finding); }));
  return findings;
}

}  // namespace lccfs::check
