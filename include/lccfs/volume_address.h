// SPDX-License-Identifier: LGPL-2.1-or-later
// Where a volume is, and the one factory from that to a store.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "lccfs/object_store.h"

namespace lccfs {

/// -c CEPH.CONF -p POOL [-n NAMESPACE] [--id CLIENT]   |   --local DIRECTORY
struct VolumeAddress {
  std::string local_directory;  ///< not empty: the embedded store, all below is unused
  std::string conf_file;
  std::string pool;            ///< name or number
  std::string pool_namespace;  ///< may be empty
  std::string client_id = "admin";

  /// As a user would type it, for messages and logs.
  std::string describe() const;
  /// not_found: there is none; with what to do.
  Error no_volume() const;

  /// What df, /proc/mounts and the metrics show of a volume, and /etc/fstab has as its first word: POOL[/NAMESPACE], or
  /// a directory.
  std::string source() const {
    if (!local_directory.empty()) return local_directory;
    return pool + (pool_namespace.empty() ? "" : "/" + pool_namespace);
  }
};

struct StoreOptions {
  std::chrono::seconds connect_timeout{30};
  /// Every step gives up after this (outcome unknown); nullopt: it waits for ever, as a mount does.
  std::optional<std::chrono::seconds> step_timeout;
  /// Local store: make the directory if it is not there (mkfs).
  bool create = false;
};

/// Connects. Errors say what to do: no such configuration file, pool or directory, no permission, cluster unreachable.
/// The local store starts threads: call it after the fork into the background.
Result<std::unique_ptr<ObjectStore>> open_store(const VolumeAddress& address, const StoreOptions& options);

}  // namespace lccfs
