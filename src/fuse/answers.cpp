// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/answers.h"

#include <fcntl.h>
#include <linux/fuse.h>

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "fuse/convert.h"

namespace lccfs::fuse {
namespace {

// What tools take for a good size of reads and writes; they multiply it, so it is not the object size.
constexpr std::uint32_t block_size_bytes = 4096;

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

fuse_attr to_attr(const Attributes& attributes) {
  fuse_attr attr = {};
  attr.ino = attributes.ino.value;
  attr.size = attributes.size_bytes;
  attr.blocks = attributes.blocks_512;
  attr.atime = static_cast<std::uint64_t>(attributes.atime.seconds);
  attr.mtime = static_cast<std::uint64_t>(attributes.mtime.seconds);
  attr.ctime = static_cast<std::uint64_t>(attributes.ctime.seconds);
  attr.atimensec = attributes.atime.nanoseconds;
  attr.mtimensec = attributes.mtime.nanoseconds;
  attr.ctimensec = attributes.ctime.nanoseconds;
  attr.mode = type_bits(attributes.type) | (attributes.mode & 07777);
  attr.nlink = attributes.nlink;
  attr.uid = attributes.uid;
  attr.gid = attributes.gid;
  attr.rdev = static_cast<std::uint32_t>(attributes.rdev);
  attr.blksize = block_size_bytes;
  return attr;
}

template <class Nanoseconds>
void set_ttl(std::chrono::nanoseconds ttl, std::uint64_t& seconds, Nanoseconds& nanoseconds) {
  const auto count = std::max(std::int64_t{0}, std::int64_t{ttl.count()});
  seconds = static_cast<std::uint64_t>(count / 1'000'000'000);
  nanoseconds = static_cast<Nanoseconds>(count % 1'000'000'000);
}

}  // namespace

std::string attributes_answer(const AttributesReply& reply) {
  fuse_attr_out out = {};
  set_ttl(reply.attributes_ttl, out.attr_valid, out.attr_valid_nsec);
  out.attr = to_attr(reply.attributes);
  return bytes_of(out);
}

std::string entry_answer(const EntryReply& reply) {
  fuse_entry_out out = {};
  out.nodeid = reply.attributes.ino.value;
  out.generation = 0;  // inode numbers are never used again
  set_ttl(reply.entry_ttl, out.entry_valid, out.entry_valid_nsec);
  set_ttl(reply.attributes_ttl, out.attr_valid, out.attr_valid_nsec);
  out.attr = to_attr(reply.attributes);
  return bytes_of(out);
}

std::string listed_entry_answer(const ListedEntry& listed) {
  const auto& [name, ino, type, cookie] = listed.entry;
  fuse_dirent entry = {};
  entry.ino = ino.value;
  entry.off = cookie;
  entry.namelen = static_cast<std::uint32_t>(name.size());
  entry.type = type_bits(type) >> 12;
  std::string answer = listed.reply ? entry_answer(*listed.reply) : bytes_of(fuse_entry_out{});
  answer.append(reinterpret_cast<const char*>(&entry), offsetof(fuse_dirent, name)).append(name);
  answer.resize(listed_entry_bytes(listed.entry), '\0');
  return answer;
}

std::size_t listed_entry_bytes(const DirectoryEntry& entry) {
  return FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET_DIRENTPLUS + entry.name.size());
}

/// Writes of O_DIRECT to one file go out together.
std::string open_answer(const OpenReply& reply, int flags) {
  fuse_open_out out = {};
  out.fh = reply.handle.value;
  if (reply.bypass_pages) out.open_flags |= FOPEN_DIRECT_IO;
  if ((flags & O_DIRECT) != 0) out.open_flags |= FOPEN_PARALLEL_DIRECT_WRITES;
  if (reply.keep_pages) out.open_flags |= FOPEN_KEEP_CACHE;
  return bytes_of(out);
}

std::string create_answer(const CreateReply& reply, int flags) {
  return entry_answer(reply.entry) + open_answer(reply.open, flags);
}

std::string open_directory_answer(HandleId handle) { return open_answer({.handle = handle}, 0); }

std::string written_answer(std::size_t size_bytes) {
  return bytes_of(fuse_write_out{.size = static_cast<std::uint32_t>(size_bytes), .padding = 0});
}

std::string seek_answer(std::uint64_t offset) { return bytes_of(fuse_lseek_out{.offset = offset}); }

std::string lock_answer(const std::optional<LockHeld>& held) {
  fuse_lk_out out = {};
  const auto lock = held.value_or(LockHeld{.type = LockType::none});
  out.lk.start = lock.first;
  out.lk.end = lock.last;
  out.lk.type = static_cast<std::uint32_t>(lock_type_bits(lock.type));
  out.lk.pid = lock.pid;
  return bytes_of(out);
}

std::string xattr_size_answer(std::size_t size_bytes) {
  return bytes_of(fuse_getxattr_out{.size = static_cast<std::uint32_t>(size_bytes), .padding = 0});
}

// Of files, nothing counts them: those there are at most as many as objects. One more takes about a block, and an object
// of the quota, where there is one.
std::string usage_answer(const VolumeUsage& usage) {
  fuse_statfs_out out = {};
  out.st.bsize = out.st.frsize = block_size_bytes;
  out.st.blocks = usage.total_bytes / block_size_bytes;
  out.st.bfree = out.st.bavail = usage.available_bytes / block_size_bytes;
  out.st.ffree = std::min(out.st.bfree, usage.available_objects.value_or(out.st.bfree));
  out.st.files = usage.objects + out.st.ffree;
  out.st.namelen = 255;
  return bytes_of(out);
}

}  // namespace lccfs::fuse
