// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace lccfs::local {
namespace {

constexpr const char* marker = "lccfs-local";
constexpr const char* new_marker = "lccfs-local.new";
constexpr const char* marker_text = "LCCFS local store, layout ";
constexpr unsigned layout = 1;

std::string marker_of(unsigned number) { return marker_text + std::to_string(number) + "\n"; }

Result<Descriptor> open_at(int directory, const std::string& name, int flags, const std::string& what) {
  Descriptor opened(::openat(directory, name.c_str(), flags | O_CLOEXEC, 0600));
  if (!opened) return std::unexpected(system_error(what));
  return opened;
}

/// A user that may write into the folder of a volume decides what every program does that works on it: which files it
/// changes, and which processes it fences.
Result<> check_owner(int directory, const std::string& path) {
  struct stat status {};
  if (::fstat(directory, &status) != 0) return std::unexpected(system_error(path));
  const uid_t me = ::geteuid();
  if (status.st_uid != me && status.st_uid != 0)
    return failure(ErrorCode::permission_denied, path + ": belongs to user " + std::to_string(status.st_uid) +
                                                     ", who could make this program do anything as user " +
                                                     std::to_string(me) + "; run it as that user, or change the owner");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return failure(ErrorCode::permission_denied, path + ": other users may write into it; first: chmod go-w " + path);
  return {};
}

Result<Descriptor> open_root(const std::string& path, bool create) {
  if (create && ::mkdir(path.c_str(), 0700) == 0) {
    const auto parent = std::filesystem::path(path).lexically_normal() / "..";
    LCCFS_TRY(const auto above, open_at(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, parent));
    LCCFS_CHECK(sync_directory(above.get(), parent));
  } else if (create && errno != EEXIST) {
    return std::unexpected(system_error("cannot make the directory " + path));
  }
  Descriptor root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root) {
    LCCFS_CHECK(check_owner(root.get(), path));
    return root;
  }
  if (errno == ENOENT) return failure(ErrorCode::not_found, path + ": no such directory; mkfs makes it");
  if (errno == ENOTDIR) return failure(ErrorCode::invalid, path + ": not a directory");
  return std::unexpected(system_error(path));
}

/// Nothing in it but what a first run of ours that was cut short, or a new file system, leaves.
Result<bool> is_empty(int root, const std::string& path) {
  LCCFS_TRY(const auto names, names_in(root, ".", "list " + path));
  return std::ranges::all_of(names, [](const auto& name) { return name == "lost+found" || name == new_marker; });
}

Result<> write_marker(int root, const std::string& path) {
  LCCFS_TRY(const auto file, open_at(root, new_marker, O_WRONLY | O_CREAT | O_TRUNC, "write to " + path));
  const std::string text = marker_of(layout);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) || ::fsync(file.get()) != 0)
    return std::unexpected(system_error("write to " + path));
  if (::renameat(root, new_marker, root, marker) != 0) return std::unexpected(system_error("write to " + path));
  return sync_directory(root, path);
}

Result<> check_marker(int file, const std::string& path) {
  char buffer[64];
  const ssize_t size = ::read(file, buffer, sizeof buffer);
  if (size < 0) return std::unexpected(system_error("read " + path + "/" + marker));
  const std::string text(buffer, static_cast<std::size_t>(size));
  unsigned found = 0;
  if (text.starts_with(marker_text)) std::sscanf(text.c_str() + std::strlen(marker_text), "%u", &found);
  if (found == 0 || text != marker_of(found))
    return failure(ErrorCode::corrupt, path + "/" + marker + ": not a text of ours");
  if (found > layout)
    return failure(ErrorCode::unsupported, path + ": layout " + std::to_string(found) +
                                               " of the local store is newer than this program; upgrade it");
  return {};
}

/// Found or made; the lock on the directory keeps two makers apart.
Result<> ensure_marker(int root, const std::string& path, bool create) {
  const Descriptor file(::openat(root, marker, O_RDONLY | O_CLOEXEC));
  if (file) return check_marker(file.get(), path);
  if (errno != ENOENT) return std::unexpected(system_error(path + "/" + marker));
  if (!create) return failure(ErrorCode::not_found, path + ": holds no volume; mkfs makes one");
  LCCFS_TRY(const bool empty, is_empty(root, path));
  if (!empty) return failure(ErrorCode::exists, path + ": not empty, and no volume; give mkfs an empty directory");
  return write_marker(root, path);
}

bool is_denied(int root, const char* name) {
  return ::faccessat(root, name, W_OK, AT_EACCESS) != 0 && (errno == EACCES || errno == EROFS);
}

Result<Descriptor> ensure_subdirectory(int root, const std::string& path, const char* name) {
  const std::string what = path + "/" + name;
  if (::mkdirat(root, name, 0700) == 0) {
    LCCFS_CHECK(sync_directory(root, path));
  } else if (errno != EEXIST) {
    return std::unexpected(system_error(what));
  }
  LCCFS_TRY(Descriptor opened, open_at(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, what));
  LCCFS_CHECK(check_owner(opened.get(), what));
  return opened;
}

/// It is made before the metadata. Made anew beside them, all files would read as zeros.
Result<Descriptor> ensure_data(int root, const std::string& path) {
  const auto is_missing = [root](const char* name) { return ::faccessat(root, name, F_OK, 0) != 0 && errno == ENOENT; };
  if (is_missing("data") && !is_missing("metadata/data.mdb"))
    return failure(ErrorCode::corrupt,
                   path + "/data is missing, where the bytes of all files are: restore it from a copy");
  return ensure_subdirectory(root, path, "data");
}

Result<Descriptor> lock_marker(const Directory& directory, int operation, short& type) {
  const std::string what = directory.path + "/" + marker;
  LCCFS_TRY(Descriptor file, open_at(directory.root.get(), marker, O_RDONLY, what));
  struct flock lock {};
  lock.l_type = type;
  if (::fcntl(file.get(), operation, &lock) != 0) return std::unexpected(system_error("lock " + what));
  type = lock.l_type;
  return file;
}

}  // namespace

Result<Directory> open_directory(const std::string& path, bool create) {
  Directory directory;
  directory.path = path;
  LCCFS_TRY(directory.root, open_root(path, create));
  const int root = directory.root.get();
  if (create && ::flock(root, LOCK_EX) != 0) return std::unexpected(system_error("lock " + path));
  LCCFS_CHECK(ensure_marker(root, path, create));
  LCCFS_TRY(directory.data, ensure_data(root, path));
  LCCFS_TRY(directory.clients, ensure_subdirectory(root, path, "clients"));
  LCCFS_CHECK(ensure_subdirectory(root, path, "metadata"));
  directory.metadata_path = path + "/metadata";
  directory.read_only = is_denied(root, "clients") || is_denied(root, "metadata/data.mdb");
  if (create && ::flock(root, LOCK_UN) != 0) return std::unexpected(system_error("unlock " + path));
  return directory;
}

Result<Descriptor> show_onlooker(const Directory& directory) {
  short type = F_RDLCK;
  return lock_marker(directory, F_OFD_SETLK, type);
}

Result<> expect_no_onlooker(const Directory& directory) {
  short type = F_WRLCK;
  LCCFS_CHECK(lock_marker(directory, F_OFD_GETLK, type));
  if (type == F_UNLCK) return {};
  return failure(ErrorCode::busy, directory.path + ": somebody who may only read has it open; end that first");
}

}  // namespace lccfs::local
