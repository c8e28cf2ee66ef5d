// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/paths.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <future>
#include <memory>

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

std::string line_of(const std::string& path, const Attributes& attributes, unsigned links) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, " %c%o %u", letter(attributes.type), attributes.mode, links);
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
  if (const auto known = known_.find(path); known != known_.end()) return known->second;
  LCCFS_TRY(const Place at, place(path));
  LCCFS_TRY(const EntryReply entry, file_system_.lookup(at.parent, at.name));
  return entry.attributes.ino;
}

Result<> Paths::stay_at(const std::string& path) {
  LCCFS_TRY(known_[path], find(path));
  return {};
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

Result<> Paths::link(const std::string& path, const std::string& new_name) {
  LCCFS_TRY(const Ino ino, find(path));
  LCCFS_TRY(const Place at, place(new_name));
  LCCFS_CHECK(file_system_.link(ino, at.parent, at.name));
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

Result<> Paths::truncate(const std::string& path, std::uint64_t size_bytes) {
  LCCFS_TRY(const Ino ino, find(path));
  SetAttributes changes;
  changes.size_bytes = size_bytes;
  LCCFS_CHECK(file_system_.set_attributes(root_user, ino, changes));
  return {};
}

Result<> Paths::set_xattr(const std::string& path, const std::string& name, const Bytes& value) {
  LCCFS_TRY(const Ino ino, find(path));
  return file_system_.set_xattr(ino, name, value, XattrMode::create_or_replace);
}

Result<> Paths::remove_xattr(const std::string& path, const std::string& name) {
  LCCFS_TRY(const Ino ino, find(path));
  return file_system_.remove_xattr(ino, name);
}

Result<> Paths::write(HandleId handle, std::uint64_t offset, const std::string& bytes, int flags) {
  const auto kept = std::make_shared<const std::string>(bytes);
  const SharedBytes shared{std::shared_ptr<const char>(kept, kept->data()), kept->data(), kept->size()};
  std::promise<Result<std::size_t>> promise;
  auto answer = promise.get_future();
  file_system_.write(handle, {.caller = root_user, .offset_bytes = offset, .bytes = shared, .flags = flags},
                     [&promise](Result<std::size_t> written) { promise.set_value(std::move(written)); });
  LCCFS_CHECK(answer.get());
  return {};
}

Result<std::string> Paths::read(HandleId handle, std::uint64_t offset, std::size_t size_bytes) {
  std::string bytes(size_bytes, '\0');
  std::promise<Result<std::size_t>> promise;
  auto answer = promise.get_future();
  file_system_.read(handle, offset, bytes, [&promise](Result<std::size_t> got) { promise.set_value(std::move(got)); });
  LCCFS_TRY(const std::size_t got, answer.get());
  bytes.resize(got);
  return bytes;
}

void Paths::close(HandleId handle) {
  static_cast<void>(file_system_.flush(handle));
  file_system_.release(handle);
}

Result<> Paths::sync_directory(const std::string& path) {
  LCCFS_TRY(const Ino ino, find(path));
  return file_system_.sync_directory(ino);
}

Result<> Paths::write(const std::string& path, std::uint64_t offset, const std::string& bytes, int flags) {
  LCCFS_TRY(const HandleId handle, open(path, flags));
  auto written = write(handle, offset, bytes, flags);
  if (written) written = file_system_.flush(handle);
  file_system_.release(handle);
  return written;
}

Result<> Paths::fallocate(const std::string& path, int mode, std::uint64_t offset, std::uint64_t size_bytes) {
  LCCFS_TRY(const HandleId handle, open(path, O_WRONLY));
  auto done = file_system_.fallocate(root_user, handle, mode, offset, size_bytes);
  if (done) done = file_system_.flush(handle);
  file_system_.release(handle);
  return done;
}

Result<> Paths::copy(const std::string& from, std::uint64_t from_offset, const std::string& to, std::uint64_t to_offset,
                     std::uint64_t size_bytes) {
  LCCFS_TRY(const HandleId target, open(to, O_WRONLY));
  const auto source = open(from, O_RDONLY);
  Result<> done;
  if (!source) {
    done = std::unexpected(source.error());
  } else if (auto copied = file_system_.copy_file_range(root_user, *source, from_offset, target, to_offset, size_bytes);
             !copied) {
    done = std::unexpected(std::move(copied).error());
  }
  if (done) done = file_system_.flush(target);
  if (source) close(*source);
  file_system_.release(target);
  return done;
}

Result<HandleId> Paths::open(const std::string& path, int flags) {
  LCCFS_TRY(const Ino ino, find(path));
  LCCFS_TRY(const OpenReply opened, file_system_.open(root_user, ino, flags));
  return opened.handle;
}

std::vector<std::string> Paths::tree() {
  Listing listing;
  auto& lines = listing.lines;
  const auto root = file_system_.get_attributes(root_ino);
  if (!root) return {"/ " + root.error().context};
  list(root->attributes, "/", "", listing);
  std::map<Ino, unsigned> names;
  for (const auto& name : listing.others) ++names[name.attributes.ino];
  for (const auto& [attributes, path, rest] : listing.others) {
    const auto links = names.at(attributes.ino);
    lines.push_back(line_of(path, attributes, links) + rest);
    if (attributes.nlink < links) lines.push_back(path + ": its link count is " + std::to_string(attributes.nlink));
  }
  std::ranges::sort(lines);
  return lines;
}

void Paths::list(const Attributes& directory, const std::string& line, const std::string& path, Listing& listing) {
  auto& lines = listing.lines;
  unsigned links = 2;
  const auto handle = file_system_.open_directory(directory.ino);
  if (!handle) return lines.push_back(path + ": open: " + handle.error().context);
  std::uint64_t cookie = 0;
  for (;;) {
    const auto page = file_system_.read_directory(*handle, cookie, 100);
    if (!page) lines.push_back(path + ": list: " + page.error().context);
    if (!page || page->empty()) break;
    cookie = page->back().cookie;
    for (const DirectoryEntry& entry : *page) {
      if (entry.name == "." || entry.name == "..") continue;
      if (entry.type == FileType::directory) ++links;
      describe_entry(entry, directory.ino, path + "/" + entry.name, listing);
    }
  }
  file_system_.release_directory(*handle);
  lines.push_back(line_of(line, directory, links) + xattrs_of(directory.ino));
  if (directory.nlink < links) lines.push_back(line + ": its link count is " + std::to_string(directory.nlink));
}

void Paths::describe_entry(const DirectoryEntry& entry, Ino parent, const std::string& path, Listing& listing) {
  auto& lines = listing.lines;
  const auto found = file_system_.lookup(parent, entry.name);
  if (!found) return lines.push_back(path + ": listed, but lookup says: " + describe(found.error().code));
  const Attributes& attributes = found->attributes;
  if (attributes.type != entry.type || attributes.ino != entry.ino) {
    lines.push_back(path + ": listed as another inode or type than lookup says");
  }
  if (attributes.type == FileType::directory) {
    return list(attributes, path, path, listing);
  }
  std::string rest;
  if (attributes.type == FileType::symlink) {
    rest += " -> " + file_system_.read_link(attributes.ino).value_or("(cannot be read)");
  }
  rest += xattrs_of(attributes.ino);
  if (attributes.type == FileType::regular && attributes.size_bytes > 0) {
    rest += bytes_of(attributes.ino, attributes.size_bytes);
  }
  listing.others.push_back({attributes, path, std::move(rest)});
}

std::string Paths::xattrs_of(Ino ino) {
  const auto names = file_system_.list_xattrs(ino);
  if (!names) return " (xattrs: " + std::string(describe(names.error().code)) + ")";
  std::string text;
  for (const std::string& name : *names) {
    text += " " + name + "=" + file_system_.get_xattr(ino, name).value_or("(cannot be read)");
  }
  return text;
}

std::string Paths::bytes_of(Ino ino, std::uint64_t size_bytes) {
  const auto opened = file_system_.open(root_user, ino, O_RDONLY);
  if (!opened) return " (open: " + std::string(describe(opened.error().code)) + ")";
  const auto bytes = read(opened->handle, 0, size_bytes + 1);
  file_system_.release(opened->handle);
  if (!bytes) return " (read: " + std::string(describe(bytes.error().code)) + ")";
  const bool as_long_as_said = bytes->size() == size_bytes;
  return " " + runs_of(*bytes) + (as_long_as_said ? "" : " (its size is " + std::to_string(size_bytes) + ")");
}

std::string runs_of(const std::string& bytes) {
  std::string text;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const auto end = std::min(bytes.find_first_not_of(bytes[begin], begin), bytes.size());
    text += (text.empty() ? "" : " ") + std::to_string(end - begin) + (bytes[begin] == '\0' ? '.' : bytes[begin]);
    begin = end;
  }
  return text;
}

}  // namespace lccfs::test
