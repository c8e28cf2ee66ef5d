// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads and writes of a file system, awaited.
#pragma once

#include <fcntl.h>

#include <future>
#include <memory>
#include <string>

#include "lccfs/file_system.h"
#include "lccfs/volume.h"
#include "support/hooks.h"

namespace lccfs::test {

/// A volume whose files have many objects although they are small.
inline constexpr std::uint64_t object_bytes = 64 << 10;
inline MakeVolumeOptions small_objects() {
  MakeVolumeOptions options;
  options.object_size_bytes = object_bytes;
  return options;
}

inline SharedBytes shared_bytes(const std::string& text) {
  auto owner = std::make_shared<std::string>(text);
  return {std::shared_ptr<const char>(owner, owner->data()), owner->data(), owner->size()};
}

inline std::future<Result<std::size_t>> begin_write(FileSystem& fs, HandleId handle, WriteRequest request) {
  std::promise<Result<std::size_t>> promise;
  auto answer = promise.get_future();
  fs.write(handle, std::move(request), [promise = std::move(promise)](Result<std::size_t> written) mutable {
    promise.set_value(std::move(written));
  });
  return answer;
}

inline std::future<Result<std::size_t>> begin_write(FileSystem& fs, HandleId handle, std::uint64_t offset,
                                                    const std::string& text, const Caller& caller = {}) {
  return begin_write(fs, handle, {.caller = caller, .offset_bytes = offset, .bytes = shared_bytes(text)});
}

inline Result<std::size_t> write_at(FileSystem& fs, HandleId handle, std::uint64_t offset, const std::string& text,
                                    const Caller& caller = {}) {
  return begin_write(fs, handle, offset, text, caller).get();
}

/// A write whose request has these flags, as of open(2).
inline Result<std::size_t> write_with(int flags, FileSystem& fs, HandleId handle, std::uint64_t offset,
                                      const std::string& text, const Caller& caller = {}) {
  return begin_write(fs, handle,
                     {.caller = caller, .offset_bytes = offset, .bytes = shared_bytes(text), .flags = flags})
      .get();
}

inline Result<std::string> read_at(FileSystem& fs, HandleId handle, std::uint64_t offset, std::size_t length) {
  std::string target(length, '?');
  std::promise<Result<std::size_t>> promise;
  auto answer = promise.get_future();
  fs.read(handle, offset, target,
          [promise = std::move(promise)](Result<std::size_t> got) mutable { promise.set_value(std::move(got)); });
  auto got = answer.get();
  if (!got) return std::unexpected(std::move(got).error());
  target.resize(*got);
  return target;
}

/// A new file in the root, open for reading and writing.
struct OpenFile {
  Ino ino;
  HandleId handle;
};
inline OpenFile create_file(FileSystem& fs, const std::string& name, int flags = O_RDWR, std::uint32_t mode = 0644) {
  const auto made = need(fs.create({}, root_ino, name, mode, flags));
  return {made.entry.attributes.ino, made.open.handle};
}
inline HandleId open_again(FileSystem& fs, Ino ino, int flags = O_RDWR) { return need(fs.open({}, ino, flags)).handle; }
inline void close_file(FileSystem& fs, HandleId handle) {
  need(fs.flush(handle));
  fs.release(handle);
}

/// cp -a of a small file to a name that is free, with the lookup that the kernel does before it creates; cp itself does
/// not look into a directory it made.
inline void copy_as_cp_does(FileSystem& fs, const std::string& name) {
  if (fs.lookup(root_ino, name)) throw std::runtime_error(name + " is there already");
  const auto file = create_file(fs, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
  need(write_at(fs, file.handle, 0, std::string(4096, 'n')));
  SetAttributes times, mode;
  times.atime = times.mtime = TimeSpec{5, 6};
  mode.mode = 0644;
  need(fs.set_attributes({}, file.ino, times));
  need(fs.set_attributes({}, file.ino, mode));
  close_file(fs, file.handle);
}

}  // namespace lccfs::test
