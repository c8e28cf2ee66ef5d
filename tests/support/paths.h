// SPDX-License-Identifier: LGPL-2.1-or-later
// A FileSystem by paths ("/d/a"), as a program sees it. Each call looks its path up from the root, or from where it
// knows its way.
#pragma once

#include <fcntl.h>

#include <map>
#include <string>
#include <vector>

#include "lccfs/file_system.h"

namespace lccfs::test {

class Paths {
 public:
  explicit Paths(FileSystem& file_system) : file_system_(file_system) {}

  Result<Ino> find(const std::string& path);
  /// From now on that path is not looked up again, as for a process that has its working directory there.
  Result<> stay_at(const std::string& path);
  Result<> make_file(const std::string& path, std::uint32_t mode);  ///< open(2) with O_CREAT and O_EXCL, and close
  Result<> make_node(const std::string& path, const NewNode& node);
  Result<> link(const std::string& path, const std::string& new_name);
  Result<> unlink(const std::string& path);
  Result<> rmdir(const std::string& path);
  Result<> rename(const std::string& from, const std::string& to, RenameMode mode = RenameMode::replace);
  Result<> chmod(const std::string& path, std::uint32_t mode);
  Result<> truncate(const std::string& path, std::uint64_t size_bytes);
  Result<> set_xattr(const std::string& path, const std::string& name, const Bytes& value);
  Result<> remove_xattr(const std::string& path, const std::string& name);
  Result<HandleId> open(const std::string& path, int flags);
  /// open(2), fallocate(2) and close(2).
  Result<> fallocate(const std::string& path, int mode, std::uint64_t offset, std::uint64_t size_bytes);
  /// open(2) of both, copy_file_range(2) and close(2).
  Result<> copy(const std::string& from, std::uint64_t from_offset, const std::string& to, std::uint64_t to_offset,
                std::uint64_t size_bytes);
  /// open(2), pwrite(2) and close(2).
  Result<> write(const std::string& path, std::uint64_t offset, const std::string& bytes, int flags = O_WRONLY);
  /// `flags`: the descriptor's.
  Result<> write(HandleId handle, std::uint64_t offset, const std::string& bytes, int flags = O_WRONLY);
  void close(HandleId handle);
  Result<> fsync(HandleId handle, bool data_only) { return file_system_.fsync(handle, data_only); }
  Result<> sync_directory(const std::string& path);
  Result<std::string> read(HandleId handle, std::uint64_t offset, std::size_t size_bytes);

  /// A line for each name that can be reached: path, type and mode, how many links there are to a directory, or names
  /// of what is none (the link count may be higher until a collector comes), symlink's target, xattrs, a file's bytes
  /// (runs_of); and for all that does not fit together: an entry without inode, an entry whose type is not the inode's,
  /// a link count that is too low, an error.
  std::vector<std::string> tree();

 private:
  struct Place {
    Ino parent;
    std::string name;
  };
  /// What was found on the way.
  struct Listing {
    struct Name {
      Attributes attributes;
      std::string path, rest;
    };
    std::vector<std::string> lines;
    std::vector<Name> others;  // of all but directories
  };
  Result<Place> place(const std::string& path);
  void list(const Attributes& directory, const std::string& line, const std::string& path, Listing& listing);
  void describe_entry(const DirectoryEntry& entry, Ino parent, const std::string& path, Listing& listing);
  std::string xattrs_of(Ino ino);
  std::string bytes_of(Ino ino, std::uint64_t size_bytes);

  FileSystem& file_system_;
  std::map<std::string, Ino> known_;
};

/// Bytes as text: "4096a 100." for 4096 times a, and 100 zeros.
std::string runs_of(const std::string& bytes);

}  // namespace lccfs::test
