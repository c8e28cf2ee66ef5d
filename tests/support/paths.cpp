// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/paths.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>

namespace lccfs::test {
namespace {

constexpr Caller root_user{};

char letter(FileType type) {
  switch (type) {
    case FileType::regular:
      return 'f';
    case FileType::directory:
      return 'd';
    case FileType::symlink:
      return 'l';
    case FileType::fifo:
      return 'p';
    case FileType::socket:
      return 's';
    case FileType::character_device:
      return 'c';
    case FileType::block_device:
      return 'b';
  }
  return '?';
}

std::string line_of(const std::string& path, const Attributes& attributes) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, " %c%o %u", letter(attributes.type), attributes.mode, attributes.nlink);
  return path + numbers;
}

}  // namespace

Result<Paths::Place> Paths::place(const std::string& path) {
  const auto slash = path.rfind('/');
  LCCFS_TRY(const Ino parent, find(path.substr(0, slash)));
  return Place{parent, path.substr(slash + 1)};
}

Result<Ino> Paths::find(const std::string& path) {
  if (path.empty() || path == "/") return root_ino;
  LCCFS_TRY(const Place at, place(path));
  LCCFS_TRY(const EntryReply entry, file_system_.lookup(at.parent, at.name));
  return entry.attributes.ino;
}

Result<> Paths::make_file(const std::string& path, std::uint32_t mode) {
  LCCFS_TRY(const Place at, place(path));
  LCCFS_TRY(const CreateReply created,
            file_system_.create(root_user, at.parent, at.name, mode, O_CREAT | O_EXCL | O_RDWR));
  file_system_.release(created.open.handle);
  return {};
}

Result<> Paths::make_node(const std::string& path, const NewNode& node) {
  LCCFS_TRY(const Place at, place(path));
  LCCFS_CHECK(file_system_.make_node(root_user, at.parent, at.name, node));
  return {};
}

Result<> Paths::unlink(const std::string& path) {
  LCCFS_TRY(const Place at, place(path));
  return file_system_.unlink(at.parent, at.name);
}

Result<> Paths::rmdir(const std::string& path) {
  LCCFS_TRY(const Place at, place(path));
  return file_system_.rmdir(at.parent, at.name);
}

Result<> Paths::rename(const std::string& from, const std::string& to, RenameMode mode) {
  LCCFS_TRY(const Place old_place, place(from));
  LCCFS_TRY(const Place new_place, place(to));
  return file_system_.rename(old_place.parent, old_place.name, new_place.parent, new_place.name, mode);
}

Result<> Paths::chmod(const std::string& path, std::uint32_t mode) {
  LCCFS_TRY(const Ino ino, find(path));
  SetAttributes changes;
  changes.mode = mode;
  LCCFS_CHECK(file_system_.set_attributes(root_user, ino, changes));
  return {};
}

Result<HandleId> Paths::open(const std::string& path, int flags) {
  LCCFS_TRY(const Ino ino, find(path));
  LCCFS_TRY(const OpenReply opened, file_system_.open(root_user, ino, flags));
  return opened.handle;
}

std::vector<std::string> Paths::tree() {
  std::vector<std::string> lines;
  const auto root = file_system_.get_attributes(root_ino);
  if (!root) return {"/ " + root.error().context};
  lines.push_back(line_of("/", root->attributes));
  list(root_ino, "", lines);
  std::ranges::sort(lines);
  return lines;
}

void Paths::list(Ino directory, const std::string& path, std::vector<std::string>& lines) {
  const auto handle = file_system_.open_directory(directory);
  if (!handle) return lines.push_back(path + ": open: " + handle.error().context);
  std::uint64_t cookie = 0;
  for (;;) {
    const auto page = file_system_.read_directory(*handle, cookie, 100);
    if (!page) lines.push_back(path + ": list: " + page.error().context);
    if (!page || page->empty()) break;
    cookie = page->back().cookie;
    for (const DirectoryEntry& entry : *page) {
      if (entry.name == "." || entry.name == "..") continue;
      describe_entry(entry, directory, path + "/" + entry.name, lines);
    }
  }
  file_system_.release_directory(*handle);
}

void Paths::describe_entry(const DirectoryEntry& entry, Ino parent, const std::string& path,
                           std::vector<std::string>& lines) {
  const auto found = file_system_.lookup(parent, entry.name);
  if (!found) return lines.push_back(path + ": listed, but lookup says: " + describe(found.error().code));
  const Attributes& attributes = found->attributes;
  if (attributes.type != entry.type || attributes.ino != entry.ino) {
    lines.push_back(path + ": listed as another inode or type than lookup says");
  }
  std::string line = line_of(path, attributes);
  if (attributes.type == FileType::symlink) {
    line += " -> " + file_system_.read_link(attributes.ino).value_or("(cannot be read)");
  }
  lines.push_back(std::move(line));
  if (attributes.type == FileType::directory) list(attributes.ino, path, lines);
}

}  // namespace lccfs::test
