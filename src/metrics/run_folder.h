// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

namespace lccfs::metrics {

/// Where running programs have what others find them by: root's below /run, another user's in $XDG_RUNTIME_DIR; empty:
/// nowhere.
std::string run_folder();

}  // namespace lccfs::metrics
