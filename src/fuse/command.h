// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs-fuse's command line.
#pragma once

#include <string>
#include <vector>

#include "daemon/log_options.h"
#include "fuse/mount_options.h"
#include "lccfs/volume_address.h"

namespace lccfs::fuse {

struct Command {
  std::string answer;  ///< not empty: what to print instead of mounting; all below is unused
  VolumeAddress address;
  std::string mountpoint;  ///< absolute
  MountOptions options;
  bool foreground = false;
  bool create = false;
  daemon::LogOptions log;
};

/// The words after the program's name.
Result<Command> parse_command(const std::vector<std::string>& words);

/// What df and /proc/mounts show of a mount: its volume, and ":" with the directory of the volume that is mounted, if that
/// is not its root.
std::string source_of(const VolumeAddress& address, const std::string& subdirectory);

/// The mountpoint without symbolic links, if something can be mounted there. What a dead lccfs-fuse has left mounted
/// there is taken away first, if that can be proven (`locks`: metrics::run_folder()). The error says what to do.
Result<std::string> check_mountpoint(const std::string& path, const std::string& locks);

/// Whether a volume in this directory stays in sight once something is mounted there. The mountpoint is without symbolic
/// links; no directory: the volume is in a pool.
Result<> check_apart(const std::string& mountpoint, const std::string& local_directory);

}  // namespace lccfs::fuse
