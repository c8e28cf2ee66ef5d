// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads and writes go from the receiving thread straight to the file system, which never blocks on them, and are
// answered by whoever completes them.
#include <fcntl.h>

#include <algorithm>
#include <memory>

#include "fuse/operations.h"
#include "fuse/serving.h"

namespace lccfs::fuse {
namespace {

void open(fuse_req_t raw, fuse_ino_t ino, fuse_file_info* info) {
  serve(raw, "open", [ino = Ino{ino}, flags = info->flags](Serving& serving, Request request) {
    const Result<OpenReply> opened = serving.fs.open(request.caller(), ino, flags);
    if (!opened) return request.fail(opened.error());
    if (!request.open(*opened, flags)) serving.fs.release(opened->handle);
  });
}

void read(fuse_req_t raw, fuse_ino_t, std::size_t size_bytes, off_t offset, fuse_file_info* info) {
  Serving& serving = serving_of(raw);
  auto buffer = std::make_unique_for_overwrite<char[]>(size_bytes);
  const std::span<char> target(buffer.get(), size_bytes);
  // The kernel names an owner of locks in every read but those that fill its pages. Whether the descriptor is a direct one
  // now says nothing: fcntl may have changed that behind an open that passes by the pages.
  if (info->lock_owner == 0) serving.fs.is_mapped(HandleId{info->fh});
  serving.fs.read(
      HandleId{info->fh}, static_cast<std::uint64_t>(offset), target,
      [request = Request(raw, "read", serving.in_flight), buffer = std::move(buffer)](Result<std::size_t> got) mutable {
        got ? request.bytes({buffer.get(), *got}) : request.fail(got.error());
      });
}

SharedBytes copy(const char* data, std::size_t size_bytes) {
  std::shared_ptr<char[]> owner = std::make_shared_for_overwrite<char[]>(size_bytes);
  std::copy_n(data, size_bytes, owner.get());
  const char* bytes = owner.get();
  return {.owner = std::shared_ptr<const char>(std::move(owner), bytes), .data = bytes, .size_bytes = size_bytes};
}

void write(fuse_req_t raw, fuse_ino_t, const char* data, std::size_t size_bytes, off_t offset, fuse_file_info* info) {
  Serving& serving = serving_of(raw);
  Request request(raw, "write", serving.in_flight);
  WriteRequest write{.caller = request.caller(),
                     .offset_bytes = static_cast<std::uint64_t>(offset),
                     .bytes = copy(data, size_bytes),
                     .flags = info->flags,
                     .writes_back_pages = info->writepage != 0};
  serving.fs.write(HandleId{info->fh}, std::move(write),
                   [request = std::move(request)](Result<std::size_t> written) mutable {
                     written ? request.written(*written) : request.fail(written.error());
                   });
}

void flush(fuse_req_t raw, fuse_ino_t, fuse_file_info* info) {
  serve(raw, "flush",
        [handle = HandleId{info->fh}](Serving& serving, Request request) { request.finish(serving.fs.flush(handle)); });
}

void fsync(fuse_req_t raw, fuse_ino_t, int data_only, fuse_file_info* info) {
  serve(raw, "fsync", [handle = HandleId{info->fh}, data_only](Serving& serving, Request request) {
    request.finish(serving.fs.fsync(handle, data_only != 0));
  });
}

void release(fuse_req_t raw, fuse_ino_t, fuse_file_info* info) {
  serve(raw, "release", [handle = HandleId{info->fh}](Serving& serving, Request request) {
    serving.fs.release(handle);
    request.finish({});
  });
}

}  // namespace

void add_file_operations(fuse_lowlevel_ops& operations) {
  operations.open = open;
  operations.read = read;
  operations.write = write;
  operations.flush = flush;
  operations.fsync = fsync;
  operations.release = release;
}

}  // namespace lccfs::fuse
