// SPDX-License-Identifier: LGPL-2.1-or-later
// Making and describing volumes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lccfs/clock.h"
#include "lccfs/object_store.h"

namespace lccfs {

struct MakeVolumeOptions {
  std::uint32_t object_size_bytes = 4U << 20;  ///< a power of two, 64 KiB to 32 MiB
  std::string label;
  std::uint32_t grace_seconds = 60;
  std::string data_pool;
  /// For `lccfs load` alone: data objects may be there already, and no program but that one uses the volume before it.
  bool to_be_loaded = false;
};

/// `invalid`: no volume can be made so. Looks at nothing but the options.
Result<> check_options(const MakeVolumeOptions& options);

/// Makes an empty volume, and answers its UUID. `exists`: there is one, or the pool holds objects that are not ours;
/// nothing was changed.
/// Steps (src/fs/volume.cpp): Alloc, Inode.1, then Super (commit); cut short before, it may just be run again.
Result<std::string> make_volume(ObjectStore& store, Clock& clock, const MakeVolumeOptions& options);

struct InstanceInfo {
  std::uint64_t number = 0;
  std::string host, version, mount_id, state;
  bool is_live = false;                             ///< by its record: neither fenced nor ended
  std::optional<Presence> presence = std::nullopt;  ///< of one whose state is live, at this moment; nullopt: not known
  std::uint64_t pid = 0;
  std::int64_t since_seconds = 0;
};

/// What waits for the collector, in the queues of all instances.
struct BacklogInfo {
  std::uint64_t items = 0;
  std::optional<std::int64_t> oldest_seconds;  ///< when the oldest item was logged
  std::uint64_t inodes = 0;                    ///< that have lost their names
  std::uint64_t bytes = 0;                     ///< what those occupy, about
  bool is_more = false;                        ///< of both: not all were looked at
};

struct VolumeInfo {
  std::string uuid, label, data_pool;
  std::uint32_t format_version = 0;
  std::uint64_t compat = 0, ro_compat = 0, incompat = 0;
  std::uint32_t object_size_bytes = 0, grace_seconds = 0;
  std::int64_t birth_seconds = 0;
  std::uint64_t numbers_used = 0;  ///< inode and instance numbers handed out so far
  Capacity capacity;
  std::vector<InstanceInfo> instances;
  BacklogInfo backlog;
  std::string backlog_not_known;  ///< else empty: which object did not answer in time
};

/// Only looks: starts no instance. not_found: there is no volume.
Result<VolumeInfo> describe_volume(ObjectStore& store);

/// Those that are live, and those that left something for the collector; by number. Only looks. not_found: there is no
/// volume.
Result<std::vector<InstanceInfo>> describe_clients(ObjectStore& store);
/// One of them. Only looks. not_found: there is no such client, or no volume.
Result<InstanceInfo> describe_client(ObjectStore& store, std::uint64_t number);
/// Bars a client from the volume for good; after it, nothing of that client's takes effect. Answers what it was: one
/// that was not live is left as it is. Blocks; starts an instance for the time being. not_found: there is no such
/// client, or no volume. permission_denied: the key may not bar clients; nothing was changed.
Result<InstanceInfo> evict_client(std::shared_ptr<ObjectStore> store, Clock& clock, std::uint64_t number);

enum class UpgradeMode { only_tell, set };
struct Upgraded {
  std::vector<std::string> features;  ///< by name; none: there was nothing to do
  /// Mounts that keep their locks to themselves until they are mounted anew (docs/LOCKS.md section 7). Where somebody
  /// else has upgraded meanwhile, also such as have begun since.
  std::vector<InstanceInfo> local_locks;
};
/// Sets the features that this program knows and the volume has not, in one step. Blocks; starts no instance.
/// unsupported: live instances do not know them (one line that names each, and says what to do), or this version does
/// not know all that the volume uses; nothing was changed. not_found: there is no volume. An error whose outcome is
/// unknown: it may have been done; to be run again.
Result<Upgraded> upgrade_volume(ObjectStore& store, UpgradeMode mode);

}  // namespace lccfs
