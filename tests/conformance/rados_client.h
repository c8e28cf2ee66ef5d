// SPDX-License-Identifier: LGPL-2.1-or-later
// Keys of the test's own cluster.
#pragma once

#include <string>

#include "conformance/conformance.h"
#include "lccfs/volume_address.h"

namespace lccfs::conformance {

/// As client.admin; the answer's output.
std::string ask_monitors(const std::string& command);
/// What the monitors say to a command sent as it is by the client of that address: 0 or -errno.
int command_as(const VolumeAddress& client, const std::string& command);

/// The address of the test's pool, for a client that may do that and no more. Its key is made once.
VolumeAddress address_of(const std::string& client, const std::string& mon, const std::string& osd);
/// With a key as docs and man pages ask for, good for each namespace of these tests.
VolumeAddress address_of_tenant();
VolumeAddress address_of_admin();
/// Where a case's volume is, for its own clients.
VolumeAddress address_of(const Volume& volume);

}  // namespace lccfs::conformance
