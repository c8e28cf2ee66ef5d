// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs-gc's command line.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/log_options.h"
#include "daemon/monitor.h"
#include "lccfs/volume_address.h"

namespace lccfs::gc {

struct Command {
  std::string answer;  ///< not empty: what to print instead of any work; all below is unused
  enum class What { daemon, once, dry_run };
  What what = What::daemon;
  VolumeAddress address;
  unsigned jobs = 16;
  std::uint64_t operations_per_second = 0;  ///< 0: no limit
  std::chrono::nanoseconds interval{std::chrono::seconds(60)};
  std::optional<std::chrono::seconds> grace;  ///< nullopt: the volume's own
  bool json = false;
  bool foreground = false;
  daemon::MonitorOptions monitor;
  daemon::LogOptions log;
};

/// The words after the program's name.
Result<Command> parse_command(const std::vector<std::string>& words);

}  // namespace lccfs::gc
