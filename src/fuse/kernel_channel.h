// SPDX-License-Identifier: LGPL-2.1-or-later
// How libfuse reads the kernel's requests and writes the answers to them: as it would by itself, but the answer to INIT
// also takes what the kernel offers and libfuse 3.14 does not know, shared mappings of descriptors that bypass the
// kernel's pages (FUSE_DIRECT_IO_ALLOW_MMAP).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

struct fuse_session;

namespace lccfs::fuse {

/// What of the first request has to be remembered until its answer.
struct Handshake {
  std::atomic<std::uint64_t> init_request{
      0};  // its number, if it offers shared mappings; 0 otherwise, and once answered
};

/// Of a session that is mounted, and whose user data is a Serving. False: not to be had.
bool use_kernel_channel(fuse_session* session);

/// The number of an INIT request that offers them; 0: it is another one.
std::uint64_t offers_shared_mappings(std::string_view request);
/// The answer, with the offer taken.
std::string with_shared_mappings(std::string answer);

}  // namespace lccfs::fuse
