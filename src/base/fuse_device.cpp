// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/fuse_device.h"

#include <unistd.h>

#include <cerrno>

namespace lccfs {

std::optional<FuseTrouble> trouble_with_fuse(const std::string& root) {
  if (access((root + "/dev/fuse").c_str(), R_OK | W_OK) == 0) return std::nullopt;
  if (errno == EACCES)
    return FuseTrouble{"this user may not open /dev/fuse", "root permits it with: chmod 666 /dev/fuse"};
  return FuseTrouble{"cannot use /dev/fuse", "load the kernel's module with: modprobe fuse"};
}

}  // namespace lccfs
