// SPDX-License-Identifier: LGPL-2.1-or-later
// How libfuse reads the kernel's requests and writes the answers to them: as it would by itself, but the answer to INIT
// also takes three things that the kernel offers and libfuse 3.14 does not know:
// - FUSE_DIRECT_IO_ALLOW_MMAP: shared mappings of descriptors that bypass the kernel's pages;
// - FUSE_HANDLE_KILLPRIV_V2: what takes away setuid bits is left to us, and the kernel does not ask before each write
//   whether there is a security.capability to take away;
// - FUSE_SETXATTR_EXT: with an ACL comes whether setgid is to go, because the caller is not in the file's group.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

struct fuse_session;

namespace lccfs::fuse {

/// What of the first request has to be remembered, until its answer or longer.
struct Handshake {
  std::atomic<std::uint64_t> init_request{0};  // its number, if it offers any of them; 0 otherwise, and once answered
  std::atomic<std::uint64_t> offered{0};
  std::atomic<unsigned> minor{0};          // the kernel's version of the protocol, once it has been received
  std::atomic<std::uint64_t> received{0};  // the number of the request that was received last
};

/// read(2) of the next request, whose error tells how the connection ended: ENODEV, or ECONNABORTED if it was aborted
/// and the server has asked for FUSE_ABORT_ERROR. The kernel answers ECONNABORTED for an unmount, too, if that meets a
/// request on its way to us (the release of a file, say); once the connection is gone, a second read tells.
ssize_t read_from_kernel(int fd, void* buffer, std::size_t size_bytes);

/// Of a session that is mounted, and whose user data is a Serving. False: not to be had.
bool use_kernel_channel(fuse_session* session);

struct Offer {
  std::uint64_t request = 0;  ///< the number of the INIT request; 0: it is none, or offers nothing
  std::uint64_t flags = 0;    ///< of those three, in the order of the protocol's two words
};
Offer offered_by(std::string_view request);
/// The answer, with the offer taken.
std::string with_offer_taken(std::string answer, std::uint64_t flags);

/// Among the flags of a setxattr: FUSE_SETXATTR_ACL_KILL_SGID. No flag of setxattr(2).
inline constexpr int setgid_goes_flag = 1 << 30;
/// A request of a kernel whose FUSE_SETXATTR_EXT was taken, as libfuse is to see it: SETXATTR in its shorter form, with
/// the flag above. Changed in place; answers its size.
std::size_t in_libfuse_form(std::span<char> request);

}  // namespace lccfs::fuse
