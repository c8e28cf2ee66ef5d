// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/operations.h"

#include "fuse/serving.h"

namespace lccfs::fuse {
namespace {

// The biggest request that libfuse 3.14 negotiates (256 pages).
constexpr unsigned max_write_bytes = 1U << 20;
// Direct requests beyond this wait in the kernel, which would begin to hold them back at 12. At most so many buffers of
// 1 MiB are in flight.
constexpr unsigned max_background_requests = 128;

// Neither the kernel's writeback cache (it never believes a size that another client changed) nor posix ACLs.
void init(void*, fuse_conn_info* connection) {
  constexpr unsigned wanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS |
                              FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA;
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
