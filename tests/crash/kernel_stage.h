// SPDX-License-Identifier: LGPL-2.1-or-later
// Plays what programs do on mounts with a kernel above them, and judges what they see by the model file system.
#pragma once

#include <string>
#include <vector>

#include "crash/kernel_action.h"
#include "crash/stage.h"

namespace lccfs::crash {

struct KernelCounts {
  std::size_t histories = 0, calls = 0, within = 0, kills = 0;
};

/// What is wrong; empty: nothing.
std::string play_on_kernels(const Start& start, const Mounts& mounts, const std::vector<Action>& actions,
                            KernelCounts& counts);

/// Files and directories that the actions are about.
std::vector<Call> setup_for_kernels();

}  // namespace lccfs::crash
