// SPDX-License-Identifier: LGPL-2.1-or-later
// Test builds alone: the deliberate faults of faults.py are in the sources, and LCCFS_FAULT switches one of them on.
#pragma once

#include <cstdlib>
#include <string_view>

namespace lccfs::mutations {

inline bool is_on(std::string_view fault) {
  static const char* const chosen = std::getenv("LCCFS_FAULT");
  return chosen != nullptr && fault == chosen;
}

}  // namespace lccfs::mutations

#define LCCFS_FAULT(name) ::lccfs::mutations::is_on(name)
