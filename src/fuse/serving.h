// SPDX-License-Identifier: LGPL-2.1-or-later
// What the operations of one session share: its user data.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/thread_pool.h"
#include "fuse/fuse_api.h"
#include "fuse/kernel_channel.h"
#include "fuse/lookup_counts.h"
#include "fuse/request_buffers.h"
#include "lccfs/file_system.h"

namespace lccfs::fuse {

struct Serving {
  FileSystem& fs;
  Clock& clock;
  LookupCounts lookups;
  std::atomic<std::size_t> in_flight{0};
  Handshake handshake;
  RequestBuffers requests;
  std::uint64_t tickets = 0;  // of locks that wait; the receiving thread's
  ThreadPool pool;            // last: its threads end before what they use

  void forget(Ino ino, std::uint64_t count) {
    if (lookups.drop(ino, count)) fs.forget(ino);
  }
};

}  // namespace lccfs::fuse
