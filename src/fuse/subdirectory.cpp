// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/subdirectory.h"

#include <sstream>

namespace lccfs::fuse {

Result<std::vector<std::string>> names_in(const std::string& path) {
  if (!path.starts_with('/')) return failure(ErrorCode::invalid, "'" + path + "' is no path from the volume's root on");
  std::vector<std::string> names;
  std::istringstream words(path);
  for (std::string name; std::getline(words, name, '/');) {
    if (name == "." || name == "..") return failure(ErrorCode::invalid, "no path with " + name + " is mounted");
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

Result<Ino> find_directory(FileSystem& fs, const std::string& path) {
  LCCFS_TRY(const auto names, names_in(path));
  Ino directory = root_ino;
  std::string walked;
  for (const std::string& name : names) {
    walked += "/" + name;
    const auto entry = fs.lookup(directory, name);
    if (!entry && entry.error().code == ErrorCode::not_found)
      return failure(ErrorCode::not_found, "the volume has no directory " + walked);
    if (!entry) return std::unexpected(entry.error());
    if (directory != root_ino) fs.forget(directory);
    if (entry->attributes.type != FileType::directory)
      return failure(ErrorCode::not_directory, walked + " in the volume is no directory");
    directory = entry->attributes.ino;
  }
  return directory;
}

}  // namespace lccfs::fuse
