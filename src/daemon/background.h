// SPDX-License-Identifier: LGPL-2.1-or-later
// Going to the background: the command returns when the program's work has begun, or with its error. By hand: daemon(3)
// lets it return before either is known.
#pragma once

#include <optional>
#include <vector>

#include "base/program.h"

namespace lccfs::daemon {

/// For one thread, which is the process's only one while fork() runs.
class Background {
 public:
  explicit Background(const Program& program) : program_(program) {}

  /// In the parent: waits until the child is ready or gone, and answers the status to exit with; a SIGTERM goes to the
  /// child. In the child: nullopt; a SIGHUP waits there until EndSignals takes it.
  /// The child keeps its terminal until it is ready, for its error line.
  std::optional<int> fork();
  /// In the child: the work has begun. Without a fork() before it: tells systemd so, if that waits for it.
  void ready();

 private:
  int wait_until_ready(int child_fd, int child) const;
  int status_of(int child) const;
  int cannot_start(int error) const;

  const Program program_;
  int parent_fd_ = -1;
  std::vector<int> inherited_;  // open before the program opened anything
};

}  // namespace lccfs::daemon
