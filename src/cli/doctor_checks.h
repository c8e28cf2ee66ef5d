// SPDX-License-Identifier: LGPL-2.1-or-later
// The checks of lccfs doctor, each group in a file of its own. Blocking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/diagnosis.h"
#include "cli/patient_calls.h"
#include "lccfs/clock.h"
#include "lccfs/object_store.h"
#include "lccfs/volume.h"
#include "lccfs/volume_address.h"

namespace lccfs::cli {

/// The volume, and each kind of access to it that a mount needs. Leaves nothing in the volume.
void check_store(Diagnosis& diagnosis, ObjectStore& store, Clock& clock);

/// Whether each that is live by its record is there, and their clocks against this host's.
void check_clients(Diagnosis& diagnosis, const std::vector<InstanceInfo>& clients, std::int64_t now_seconds);

/// Pools, by the monitors' answer to `osd dump`: of these names, `data_pool` may be the same.
void check_pools(Diagnosis& diagnosis, const std::string& osd_dump, const std::string& pool,
                 const std::string& data_pool);
/// The monitors' clock against this host's: their answer to `report` between two looks at ours.
void check_clock(Diagnosis& diagnosis, const std::string& report, double asked_seconds, double answered_seconds);

/// Kernel, FUSE and libvirt, as files below `root` tell.
void check_host(Diagnosis& diagnosis, const std::string& root, bool is_root);

/// Two paths to one directory, through two mounts of a volume. What is made there is removed again, but for what
/// cannot be: nothing more is tried, or removed, once a call has no answer.
void check_mounts(Diagnosis& diagnosis, PatientCalls& calls, const std::string& one, const std::string& other);

}  // namespace lccfs::cli
