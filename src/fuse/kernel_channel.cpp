// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/kernel_channel.h"

#include <linux/fuse.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fuse/fuse_api.h"
#include "fuse/serving.h"

namespace lccfs::fuse {
namespace {

constexpr std::uint64_t direct_io_allow_mmap = std::uint64_t{1} << 36;  // since Linux 6.6
constexpr std::uint64_t wanted_flags = FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT | direct_io_allow_mmap;

Handshake& handshake_of(void* userdata) { return static_cast<Serving*>(userdata)->handshake; }

ssize_t read_request(int fd, void* buffer, std::size_t size_bytes, void* userdata) {
  const ssize_t got = read_from_kernel(fd, buffer, size_bytes);
  if (got <= 0) return got;
  const std::span<char> request(static_cast<char*>(buffer), static_cast<std::size_t>(got));
  auto& handshake = handshake_of(userdata);
  if (const auto offer = offered_by({request.data(), request.size()}); offer.request != 0) {
    handshake.offered = offer.flags;
    handshake.init_request = offer.request;
  }
  fuse_in_header header = {};
  std::memcpy(&header, request.data(), std::min(request.size(), sizeof header));
  handshake.received = header.unique;
  return (handshake.offered & FUSE_SETXATTR_EXT) != 0 ? static_cast<ssize_t>(in_libfuse_form(request)) : got;
}

ssize_t write_answer(int fd, iovec* parts, int count, void* userdata) {
  auto& handshake = handshake_of(userdata);
  const auto init_request = handshake.init_request.load();
  fuse_out_header header = {};
  if (init_request != 0) std::memcpy(&header, parts[0].iov_base, sizeof header);
  if (init_request == 0 || header.unique != init_request) return ::writev(fd, parts, count);
  handshake.init_request = 0;
  std::string answer;
  for (int i = 0; i < count; ++i) answer.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  answer = with_offer_taken(std::move(answer), handshake.offered);
  return ::write(fd, answer.data(), answer.size());
}

}  // namespace

ssize_t read_from_kernel(int fd, void* buffer, std::size_t size_bytes) {
  const ssize_t got = ::read(fd, buffer, size_bytes);
  if (got >= 0 || errno != ECONNABORTED) return got;
  pollfd connection{.fd = fd, .events = 0, .revents = 0};
  while (poll(&connection, 1, -1) < 0 && errno == EINTR) continue;
  return ::read(fd, buffer, size_bytes);
}

Offer offered_by(std::string_view request) {
  fuse_in_header header = {};
  fuse_init_in init = {};
  if (request.size() < sizeof header + sizeof init) return {};
  std::memcpy(&header, request.data(), sizeof header);
  if (header.opcode != FUSE_INIT) return {};
  std::memcpy(&init, request.data() + sizeof header, sizeof init);
  if ((init.flags & FUSE_INIT_EXT) == 0) init.flags2 = 0;
  const std::uint64_t flags = (init.flags | std::uint64_t{init.flags2} << 32) & wanted_flags;
  return flags == 0 ? Offer{} : Offer{header.unique, flags};
}

std::string with_offer_taken(std::string answer, std::uint64_t flags) {
  fuse_out_header header = {};
  fuse_init_out init = {};
  if (answer.size() < sizeof header + sizeof init) return answer;
  std::memcpy(&header, answer.data(), sizeof header);
  if (header.error != 0) return answer;
  std::memcpy(&init, answer.data() + sizeof header, sizeof init);
  init.flags |= static_cast<std::uint32_t>(flags);
  const auto flags2 = static_cast<std::uint32_t>(flags >> 32);
  if (flags2 != 0) init.flags |= FUSE_INIT_EXT;
  init.flags2 |= flags2;
  std::memcpy(answer.data() + sizeof header, &init, sizeof init);
  return answer;
}

std::size_t in_libfuse_form(std::span<char> request) {
  fuse_in_header header = {};
  fuse_setxattr_in longer = {};
  if (request.size() < sizeof header + sizeof longer) return request.size();
  std::memcpy(&header, request.data(), sizeof header);
  if (header.opcode != FUSE_SETXATTR) return request.size();
  const auto body = request.subspan(sizeof header);
  std::memcpy(&longer, body.data(), sizeof longer);
  if ((longer.setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID) != 0) longer.flags |= setgid_goes_flag;
  constexpr std::size_t cut_bytes = sizeof longer - FUSE_COMPAT_SETXATTR_IN_SIZE;
  header.len -= static_cast<std::uint32_t>(cut_bytes);
  std::memcpy(request.data(), &header, sizeof header);
  std::memcpy(body.data(), &longer, FUSE_COMPAT_SETXATTR_IN_SIZE);
  std::memmove(body.data() + FUSE_COMPAT_SETXATTR_IN_SIZE, body.data() + sizeof longer, body.size() - sizeof longer);
  return request.size() - cut_bytes;
}

bool use_kernel_channel(fuse_session* session) {
  fuse_custom_io io = {};
  io.writev = write_answer;
  io.read = read_request;
  return fuse_session_custom_io(session, &io, fuse_session_fd(session)) == 0;
}

}  // namespace lccfs::fuse
