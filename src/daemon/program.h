// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

namespace lccfs::daemon {

/// What a program in the background is called, and the statuses that it exits with.
struct Program {
  const char* name;
  int system_error;
  int internal_error;
  int interrupted;
};

}  // namespace lccfs::daemon
