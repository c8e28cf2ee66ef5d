// SPDX-License-Identifier: LGPL-2.1-or-later
// Processes of this host that are known from instances' records (docs/ORDERING.md section 2). Any thread.
#pragma once

#include <optional>
#include <string>

#include "format/records.h"

namespace lccfs {

class Processes {
 public:
  virtual ~Processes() = default;
  /// This process; nullopt: what /proc says is not its own, or nothing.
  virtual std::optional<format::ProcessRecord> own() const = 0;
  /// Proven: that instance's process ran in this boot and this PID namespace, and is no more. Of any other, and of one
  /// that another user runs, nothing is known.
  virtual bool is_gone(const format::InstanceRecord& record) const = 0;
};

/// The kernel's.
const Processes& system_processes();

std::string host_name();

}  // namespace lccfs
