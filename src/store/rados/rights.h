// SPDX-License-Identifier: LGPL-2.1-or-later
// What our own key permits.
#pragma once

#include "lccfs/result.h"
#include "store/rados/connection.h"

namespace lccfs::rados {

/// The error says in one line what the key lacks. Changes nothing.
Result<> check_may_fence(Connection& connection);

/// Whether the key may do what the volume does not need: bar whole hosts, or reach objects elsewhere in the cluster.
/// Changes nothing.
bool reaches_beyond_volume(Connection& connection);

/// The pools are for LCCFS, so that Ceph does not warn of them; the error names the command for somebody who may.
Result<> enable_application(Connection& connection);

}  // namespace lccfs::rados
