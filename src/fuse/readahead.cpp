// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/readahead.h"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace lccfs::fuse {

// The handshake can only lower what the kernel offers, which is 128 KiB; this file takes any size afterwards.
Result<> set_readahead(const std::string& device, std::uint64_t size_bytes, const std::string& devices) {
  const std::string path = devices + "/" + device + "/read_ahead_kb";
  std::ofstream file(path, std::ios::in | std::ios::out);
  if (file) file << size_bytes / 1024 << std::flush;
  if (file) return {};
  return failure(ErrorCode::io, "cannot write " + path + ": " + std::strerror(errno) +
                                    "; the kernel keeps its own limit for reading ahead, mostly 128 KiB, and "
                                    "sequential buffered reads wait for the store more often");
}

}  // namespace lccfs::fuse
