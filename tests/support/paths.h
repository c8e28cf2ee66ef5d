// SPDX-License-Identifier: LGPL-2.1-or-later
// A FileSystem by paths ("/d/a"), as a program sees it. Each call looks its path up from the root.
#pragma once

#include <string>
#include <vector>

#include "lccfs/file_system.h"

namespace lccfs::test {

class Paths {
 public:
  explicit Paths(FileSystem& file_system) : file_system_(file_system) {}

  Result<Ino> find(const std::string& path);
  Result<> make_file(const std::string& path, std::uint32_t mode);  ///< open(2) with O_CREAT and O_EXCL, and close
  Result<> make_node(const std::string& path, const NewNode& node);
  Result<> unlink(const std::string& path);
  Result<> rmdir(const std::string& path);
  Result<> rename(const std::string& from, const std::string& to, RenameMode mode = RenameMode::replace);
  Result<> chmod(const std::string& path, std::uint32_t mode);
  Result<HandleId> open(const std::string& path, int flags);

  /// A line for each inode that can be reached: path, type and mode, link count, symlink's target; and for all that
  /// does not fit together: an entry without inode, an entry whose type is not the inode's, an error.
  std::vector<std::string> tree();

 private:
  struct Place {
    Ino parent;
    std::string name;
  };
  Result<Place> place(const std::string& path);
  void list(Ino directory, const std::string& path, std::vector<std::string>& lines);
  void describe_entry(const DirectoryEntry& entry, Ino parent, const std::string& path,
                      std::vector<std::string>& lines);

  FileSystem& file_system_;
};

}  // namespace lccfs::test
