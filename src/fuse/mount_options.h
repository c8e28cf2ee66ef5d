// SPDX-License-Identifier: LGPL-2.1-or-later
// -o, as mount(8) and /etc/fstab have it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/monitor.h"
#include "lccfs/result.h"

namespace lccfs::fuse {

/// How changes of names are stored, and whether directories are held (docs/NAMES.md).
enum class Names {
  sync,    ///< before the answer, none is held
  leased,  ///< before the answer
  behind,  ///< after it, where the directory is held
};

struct MountOptions {
  bool read_only = false, no_suid = false, no_dev = false, no_exec = false;
  bool allow_other = false;
  bool end_when_fenced = false;
  std::string subdirectory = "/";  ///< of the volume: what is mounted
  bool collect_garbage = true;     ///< a read-only mount does not, whatever this says
  std::optional<std::chrono::nanoseconds> entry_ttl, attributes_ttl;
  std::uint64_t dirty_limit_bytes = 64 << 20;
  unsigned idle_leases = 4096;
  Names names = Names::behind;
  std::uint64_t names_memory_bytes = 64 << 20;
  std::optional<std::uint64_t> readahead_bytes;
  daemon::MonitorOptions monitor;
};

/// Adds a comma list to `options`; later words win. A comma in a word has a backslash before it, as a backslash may have.
/// An unknown word is an error that names it.
Result<> add_mount_options(const std::string& list, MountOptions& options);

}  // namespace lccfs::fuse
