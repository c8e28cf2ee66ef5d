// SPDX-License-Identifier: LGPL-2.1-or-later
// The mounts and collectors that run, and how they are asked.
#pragma once

#include <string>
#include <vector>

#include "cli/metrics_page.h"
#include "metrics/http_client.h"

namespace lccfs::cli {

struct RunningProgram {
  metrics::HttpPlace place;
  MetricsPage page;  ///< as of this look

  std::string mountpoint() const { return page.label("lccfs_info", "mountpoint"); }
  std::string pid() const { return page.label("lccfs_info", "pid"); }
};

/// Of this host, and of the caller (root's, for root). Those that do not answer within a second are left out.
std::vector<RunningProgram> find_running();
/// The same, of these: mountpoints and process ids of this host, and ADDRESS:PORT of any. None: the mounts and
/// collectors of this host. The error says in one line which of them there is not.
Result<std::vector<RunningProgram>> find_running(const std::vector<std::string>& wanted);
/// Looks once more.
Result<MetricsPage> look_at(const metrics::HttpPlace& place);

}  // namespace lccfs::cli
