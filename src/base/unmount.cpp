// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/unmount.h"

#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace lccfs {

void unmount_at_once(const std::string& path) {
  if (umount2(path.c_str(), UMOUNT_NOFOLLOW | MNT_DETACH) == 0 || errno != EPERM) return;
  const char* const words[] = {"fusermount3", "-uzq", path.c_str(), nullptr};
  pid_t helper = 0;
  if (posix_spawnp(&helper, words[0], nullptr, nullptr, const_cast<char* const*>(words), environ) == 0)
    waitpid(helper, nullptr, 0);
}

}  // namespace lccfs
