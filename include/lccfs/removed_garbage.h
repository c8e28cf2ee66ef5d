// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>

namespace lccfs {

/// What a pass of the collector has removed so far.
struct RemovedGarbage {
  std::uint64_t inodes = 0, data_objects = 0, bytes = 0;
};
/// Is told while the pass is at work, on its threads, but on one at a time; and once more at its end, even if the pass has
/// failed. Never of less than before.
using OnGarbageRemoved = std::function<void(const RemovedGarbage& so_far)>;

}  // namespace lccfs
