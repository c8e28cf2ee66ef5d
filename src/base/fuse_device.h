// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

namespace lccfs {

/// What keeps this user from the device of FUSE, and what to do about it; for people.
struct FuseTrouble {
  const char* seen;
  const char* advice;
};

/// `root`: the folder that the host has as "/". nullopt: the device can be used.
std::optional<FuseTrouble> trouble_with_fuse(const std::string& root = "");

}  // namespace lccfs
