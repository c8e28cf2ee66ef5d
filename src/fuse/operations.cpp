// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/operations.h"

#include "fuse/serving.h"

namespace lccfs::fuse {
namespace {

// The biggest request that libfuse 3.14 negotiates (256 pages).
constexpr unsigned max_write_bytes = 1U << 20;
// Direct requests and readahead of all files together. With so many in flight (the kernel's own number is 12) whoever
// sends one more waits in the kernel, also for a file whose OSD lives; from three quarters on it gives up readahead. So
// it is far above what hangs on an OSD that is away. Each has its buffer: who writes with 4096 direct requests of 1 MiB
// in flight, and holds 4 GiB for them himself, makes the mount hold them too.
constexpr unsigned max_background_requests = 4096;

// Neither the kernel's writeback cache (it never believes a size that another client changed) nor posix ACLs.
void init(void*, fuse_conn_info* connection) {
  constexpr unsigned wanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS |
                              FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_EXPORT_SUPPORT;
  connection->want = wanted & connection->capable;
  connection->max_write = max_write_bytes;
  connection->max_background = max_background_requests;
}

void statfs(fuse_req_t raw, fuse_ino_t) {
  serve(raw, "statfs", [](Serving& serving, Request request) {
    const Result<VolumeUsage> usage = serving.fs.usage();
    usage ? request.usage(*usage) : request.fail(usage.error());
  });
}

}  // namespace

// Not among them, so that libfuse answers ENOSYS and the kernel does without: locks (kept by the kernel, for this host
// alone), fallocate, lseek, copy_file_range, ioctl, access (default_permissions), readdirplus.
fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops result = {};
  result.init = init;
  result.statfs = statfs;
  add_name_operations(result);
  add_directory_operations(result);
  add_attribute_operations(result);
  add_file_operations(result);
  return result;
}

}  // namespace lccfs::fuse
