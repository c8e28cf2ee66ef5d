// SPDX-License-Identifier: LGPL-2.1-or-later
// As mount(8) has them.
#pragma once

namespace lccfs::fuse {

inline constexpr int exit_success = 0;
inline constexpr int exit_usage = 1;
inline constexpr int exit_system_error = 2;
inline constexpr int exit_internal_error = 4;
inline constexpr int exit_interrupted = 8;
inline constexpr int exit_mount_failure = 32;

}  // namespace lccfs::fuse
