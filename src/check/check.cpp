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

}  // namespace

Result<std::vector<Finding>> check_volume(ObjectStore& store) {
  LCCFS_CHECK(find_data_pool(store));
  LCCFS_TRY(VolumeView view, scan_volume(store));
  check_numbers(view);
  check_entries(view);
  check_reverse_keys(view);
  check_directories(view);
  check_back_pointers(view);
  check_queue(view);
  check_map(view);
  LCCFS_CHECK(check_tails(view, store));
  return std::move(view.findings);
}

}  // namespace lccfs::check
