// SPDX-License-Identifier: LGPL-2.1-or-later
// Going to the background as a mount program must: the command returns when the mount is ready, or with its error.
#pragma once

#include <optional>

namespace lccfs::fuse {

/// For one thread, which is the process's only one while fork() runs.
class Background {
 public:
  /// In the parent: waits until the child is ready or gone, and answers the status to exit with. In the child: nullopt.
  /// The child keeps its terminal until it is ready, for its error line.
  std::optional<int> fork();
  /// In the child: the mount is ready. Without a fork() before it: nothing.
  void ready();

 private:
  int parent_fd_ = -1;
};

}  // namespace lccfs::fuse
