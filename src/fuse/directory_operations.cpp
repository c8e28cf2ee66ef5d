// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string>
#include <vector>

#include "fuse/convert.h"
#include "fuse/operations.h"
#include "fuse/serving.h"

namespace lccfs::fuse {
namespace {

// What the shortest name takes in an answer: so many more entries than this never fit.
constexpr std::size_t shortest_entry_bytes = 32;

void opendir(fuse_req_t raw, fuse_ino_t ino, fuse_file_info*) {
  serve(raw, "opendir", [ino = Ino{ino}](Serving& serving, Request request) {
    const Result<HandleId> handle = serving.fs.open_directory(ino);
    if (!handle) return request.fail(handle.error());
    if (!request.open_directory(*handle)) serving.fs.release_directory(*handle);
  });
}

/// As many entries as fit.
std::string pack(fuse_req_t raw, const std::vector<DirectoryEntry>& entries, std::size_t size_bytes) {
  std::string packed(size_bytes, '\0');
  std::size_t used = 0;
  for (const DirectoryEntry& entry : entries) {
    struct stat values = {};
    values.st_ino = entry.ino.value;
    values.st_mode = type_bits(entry.type);
    const std::size_t needed = fuse_add_direntry(raw, packed.data() + used, size_bytes - used, entry.name.c_str(),
                                                 &values, static_cast<off_t>(entry.cookie));
    if (needed > size_bytes - used) break;  // it was not added
    used += needed;
  }
  packed.resize(used);
  return packed;
}

void readdir(fuse_req_t raw, fuse_ino_t, std::size_t size_bytes, off_t cookie, fuse_file_info* info) {
  serve(raw, "readdir", [raw, handle = HandleId{info->fh}, size_bytes, cookie](Serving& serving, Request request) {
    const auto entries =
        serving.fs.read_directory(handle, static_cast<std::uint64_t>(cookie), size_bytes / shortest_entry_bytes);
    if (!entries) return request.fail(entries.error());
    request.bytes(pack(raw, *entries, size_bytes));
  });
}

void releasedir(fuse_req_t raw, fuse_ino_t, fuse_file_info* info) {
  serve(raw, "releasedir", [handle = HandleId{info->fh}](Serving& serving, Request request) {
    serving.fs.release_directory(handle);
    request.finish({});
  });
}

void fsyncdir(fuse_req_t raw, fuse_ino_t ino, int, fuse_file_info*) {
  serve(raw, "fsyncdir",
        [ino = Ino{ino}](Serving& serving, Request request) { request.finish(serving.fs.sync_directory(ino)); });
}

}  // namespace

void add_directory_operations(fuse_lowlevel_ops& operations) {
  operations.opendir = opendir;
  operations.readdir = readdir;
  operations.releasedir = releasedir;
  operations.fsyncdir = fsyncdir;
}

}  // namespace lccfs::fuse
