// SPDX-License-Identifier: LGPL-2.1-or-later
// What the operations of one session share.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

#include "base/thread_pool.h"
#include "fuse/kernel_channel.h"
#include "fuse/lookup_counts.h"
#include "fuse/reply.h"
#include "lccfs/file_system.h"

namespace lccfs::fuse {

struct Serving {
  FileSystem& fs;
  Clock& clock;
  LookupCounts lookups;
  std::atomic<std::size_t> in_flight{0};
  Handshake handshake;
  ThreadPool pool;  // last: its threads end before what they use

  void forget(Ino ino, std::uint64_t count) {
    if (lookups.drop(ino, count)) fs.forget(ino);
  }
};

inline Serving& serving_of(fuse_req_t request) { return *static_cast<Serving*>(fuse_req_userdata(request)); }

/// Runs `work(Serving&, Request)` on the pool: it may block on the store, which the receiving thread must not. It owns
/// its arguments: libfuse uses their memory again as soon as the operation returns.
template <class Work>
void serve(fuse_req_t raw, const char* operation, Work work) {
  Serving& serving = serving_of(raw);
  serving.pool.post([&serving, request = Request(raw, operation, serving.in_flight), work = std::move(work)]() mutable {
    work(serving, std::move(request));
  });
}

}  // namespace lccfs::fuse
