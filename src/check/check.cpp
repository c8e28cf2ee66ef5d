// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/check.h"

#include "check/rules.h"
#include "check/volume_scan.h"

namespace lccfs::check {

Result<std::vector<Finding>> check_volume(ObjectStore& store) {
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
