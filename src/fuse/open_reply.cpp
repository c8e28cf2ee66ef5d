// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/open_reply.h"

#include <fcntl.h>
#include <linux/fuse.h>

#include <chrono>

#include "fuse/convert.h"

namespace lccfs::fuse {
namespace {

// Writes of O_DIRECT to one file go out together.
fuse_open_out to_open_out(const OpenReply& reply, int flags) {
  fuse_open_out out = {};
  out.fh = reply.handle.value;
  if (reply.bypass_pages) out.open_flags |= FOPEN_DIRECT_IO;
  if ((flags & O_DIRECT) != 0) out.open_flags |= FOPEN_PARALLEL_DIRECT_WRITES;
  if (reply.keep_pages) out.open_flags |= FOPEN_KEEP_CACHE;
  return out;
}

fuse_attr to_attr(const Attributes& attributes) {
  const struct stat values = to_stat(attributes);
  fuse_attr attr = {};
  attr.ino = values.st_ino;
  attr.size = static_cast<std::uint64_t>(values.st_size);
  attr.blocks = static_cast<std::uint64_t>(values.st_blocks);
  attr.atime = static_cast<std::uint64_t>(values.st_atim.tv_sec);
  attr.mtime = static_cast<std::uint64_t>(values.st_mtim.tv_sec);
  attr.ctime = static_cast<std::uint64_t>(values.st_ctim.tv_sec);
  attr.atimensec = static_cast<std::uint32_t>(values.st_atim.tv_nsec);
  attr.mtimensec = static_cast<std::uint32_t>(values.st_mtim.tv_nsec);
  attr.ctimensec = static_cast<std::uint32_t>(values.st_ctim.tv_nsec);
  attr.mode = values.st_mode;
  attr.nlink = static_cast<std::uint32_t>(values.st_nlink);
  attr.uid = values.st_uid;
  attr.gid = values.st_gid;
  attr.rdev = static_cast<std::uint32_t>(values.st_rdev);
  attr.blksize = static_cast<std::uint32_t>(values.st_blksize);
  return attr;
}

struct Valid {
  std::uint64_t seconds;
  std::uint32_t nanoseconds;
};

Valid to_valid(std::chrono::nanoseconds ttl) {
  constexpr std::int64_t second = 1'000'000'000;
  return {static_cast<std::uint64_t>(ttl.count() / second), static_cast<std::uint32_t>(ttl.count() % second)};
}

fuse_entry_out to_entry_out(const EntryReply& reply) {
  const Valid entry = to_valid(reply.entry_ttl);
  const Valid attributes = to_valid(reply.attributes_ttl);
  fuse_entry_out out = {};
  out.nodeid = reply.attributes.ino.value;
  out.generation = 0;
  out.entry_valid = entry.seconds;
  out.entry_valid_nsec = entry.nanoseconds;
  out.attr_valid = attributes.seconds;
  out.attr_valid_nsec = attributes.nanoseconds;
  out.attr = to_attr(reply.attributes);
  return out;
}

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

std::string open_answer(const OpenReply& reply, int flags) { return bytes_of(to_open_out(reply, flags)); }

std::string create_answer(const CreateReply& reply, int flags) {
  return bytes_of(to_entry_out(reply.entry)) + bytes_of(to_open_out(reply.open, flags));
}

}  // namespace lccfs::fuse
