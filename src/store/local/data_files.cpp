// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/data_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace lccfs::local {
namespace {

std::string directory_name(unsigned number) {
  constexpr const char* digits = "0123456789abcdef";
  return {digits[number >> 4], digits[number & 15]};
}

/// FNV-1a, folded: on disk, so it never changes.
std::string directory_of(const std::string& object) {
  std::uint32_t hash = 2166136261U;
  for (const char byte : object) hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619U;
  hash ^= hash >> 16;
  return directory_name((hash ^ (hash >> 8)) & 0xff);
}

std::string path_of(const std::string& object) { return directory_of(object) + "/" + object; }

// Set in the mode of what is made, until its name is durable. Whoever finds it, be it after a write that failed or after
// a process that was killed, syncs the name before it answers for what is in the file. It means nothing else: only the
// owner may come here.
constexpr mode_t unsynced_name = S_ISVTX;

bool has_unsynced_name(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && (status.st_mode & unsynced_name) != 0;
}

/// Its name is durable. If this fails, or is lost, the name is synced once more.
void note_synced_name(int file) {
  struct stat status {};
  if (::fstat(file, &status) == 0 && (status.st_mode & unsynced_name) != 0)
    (void)::fchmod(file, status.st_mode & ~(unsynced_name | S_IFMT));
}

/// nullopt: there is no such file.
Result<std::optional<Descriptor>> open_existing(int data, const std::string& object, int flags) {
  Descriptor file(::openat(data, path_of(object).c_str(), flags | O_CLOEXEC));
  if (file) return std::optional(std::move(file));
  if (errno == ENOENT) return std::nullopt;
  return std::unexpected(system_error("open " + object));
}

/// For a file system that has no holes.
Result<> write_zeros(int file, const std::string& object, const DataExtent& range) {
  static const std::array<char, 64 << 10> zeros{};
  struct stat status {};
  if (::fstat(file, &status) != 0) return std::unexpected(system_error("look at " + object));
  const auto end = std::min<off_t>(static_cast<off_t>(range.offset + range.size_bytes), status.st_size);
  for (auto at = static_cast<off_t>(range.offset); at < end;) {
    const auto size_bytes = std::min(zeros.size(), static_cast<std::size_t>(end - at));
    const ssize_t written = ::pwrite(file, zeros.data(), size_bytes, at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(system_error("write zeros into " + object, Outcome::unknown));
    at += written;
  }
  return {};
}

Result<> punch(int file, const std::string& object, const DataExtent& range) {
  const auto offset = static_cast<off_t>(range.offset), size = static_cast<off_t>(range.size_bytes);
  if (::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size) == 0) return {};
  if (errno == EOPNOTSUPP) return write_zeros(file, object, range);
  return std::unexpected(system_error("punch a hole into " + object, Outcome::unknown));
}

/// Bytes that another thread cuts off meanwhile are missing in the copy, too: nothing that was there takes their place.
Result<> copy_bytes(int from, int to, const DataExtent& range, const std::string& what) {
  const auto end = static_cast<off_t>(range.offset + range.size_bytes);
  for (auto at = static_cast<off_t>(range.offset); at < end;) {
    off_t in = at, out = at;
    const ssize_t size = ::copy_file_range(from, &in, to, &out, static_cast<std::size_t>(end - at), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return std::unexpected(system_error("copy " + what, Outcome::unknown));
    if (size == 0) return punch(to, what, {static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(end - at)});
    at += size;
  }
  return {};
}

/// nullopt: there is none from there on.
Result<std::optional<std::uint64_t>> next(int file, const std::string& object, std::uint64_t offset, int whence) {
  const off_t found = ::lseek(file, static_cast<off_t>(offset), whence);
  if (found >= 0) return static_cast<std::uint64_t>(found);
  if (errno == ENXIO) return std::nullopt;
  return std::unexpected(system_error("look for data in " + object));
}

Result<std::vector<DataExtent>> extents_of(int file, const std::string& object, const DataExtent& range) {
  std::vector<DataExtent> found;
  const std::uint64_t end = range.offset + range.size_bytes;
  for (std::uint64_t at = range.offset; at < end;) {
    LCCFS_TRY(const auto data, next(file, object, at, SEEK_DATA));
    if (!data || *data >= end) break;
    LCCFS_TRY(const auto hole, next(file, object, *data, SEEK_HOLE));
    if (!hole) break;  // cut off just now
    at = std::min(*hole, end);
    found.push_back({*data, at - *data});
  }
  return found;
}

/// A restore may have put files elsewhere. Listed as an object, such a file could not be read, nor removed.
Result<> check_folder(const std::string& folder, const std::vector<std::string>& names) {
  const auto wrong = std::ranges::find_if(names, [&](const auto& name) { return directory_of(name) != folder; });
  if (wrong == names.end()) return {};
  return failure(ErrorCode::corrupt, "data/" + folder + "/" + *wrong +
                                         " is in a wrong folder, where nothing finds it: move it to data/" +
                                         directory_of(*wrong) + ", or remove it");
}

bool is_at_end(int file, std::uint64_t offset) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && offset >= static_cast<std::uint64_t>(status.st_size);
}

bool is_same(const Descriptor& one, const Descriptor& other) {
  struct stat seen {};
  struct stat seen_other {};
  return ::fstat(one.get(), &seen) == 0 && ::fstat(other.get(), &seen_other) == 0 && seen.st_dev == seen_other.st_dev &&
         seen.st_ino == seen_other.st_ino;
}

}  // namespace

void Unsynced::add(Unsynced later) {
  directory |= later.directory;
  // Of one file the earlier descriptor stays: it hears of every error of a sync since then.
  if (!later.file || (file && is_same(file, later.file))) return;
  directory |= static_cast<bool>(file);  // a file whose name is gone needs no sync, but its name does
  file = std::move(later.file);
}

Result<std::size_t> DataFiles::read(const std::string& object, std::uint64_t offset, std::span<char> target,
                                    int flags) const {
  // A check asks of nearly every file whether there is a byte past its end: that needs no open.
  struct stat seen {};
  if (target.size() == 1 && ::fstatat(data_, path_of(object).c_str(), &seen, 0) == 0 &&
      offset >= static_cast<std::uint64_t>(seen.st_size))
    return 0;
  LCCFS_TRY(const auto file, open_existing(data_, object, O_RDONLY));
  std::size_t done = 0;
  while (file && done < target.size()) {
    const iovec rest{target.data() + done, target.size() - done};
    const ssize_t size = ::preadv2(file->get(), &rest, 1, static_cast<off_t>(offset + done), flags);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return std::unexpected(system_error("read " + object));
    // Linux 5.9 and 5.10 may answer no bytes, too, where a quick read would have to wait (readv(2), BUGS).
    if (size == 0 && (flags & RWF_NOWAIT) != 0 && !is_at_end(file->get(), offset + done))
      return failure(ErrorCode::io, "read " + object + ": it would have to wait");
    if (size == 0) break;
    done += static_cast<std::size_t>(size);
  }
  return done;
}

Result<Unsynced> DataFiles::open_to_write(const std::string& object) const {
  for (;;) {
    LCCFS_TRY(auto existing, open_existing(data_, object, O_WRONLY));
    if (existing) {
      const bool directory = has_unsynced_name(existing->get());
      return Unsynced{std::move(*existing), directory};
    }
    Descriptor made(
        ::openat(data_, path_of(object).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600 | unsynced_name));
    if (made) return Unsynced{std::move(made), true};
    if (errno == EEXIST) continue;
    if (errno != ENOENT) return std::unexpected(system_error("make " + object));
    if (::mkdirat(data_, directory_of(object).c_str(), 0700 | unsynced_name) != 0 && errno != EEXIST)
      return std::unexpected(system_error("make the directory of " + object));
  }
}

Result<Unsynced> DataFiles::write(const std::string& object, const std::vector<DataPiece>& pieces) const {
  LCCFS_TRY(auto opened, open_to_write(object));
  bool has_written = false;
  for (const auto& [offset, bytes] : pieces) {
    for (std::size_t done = 0; done < bytes.size_bytes;) {
      const ssize_t size =
          ::pwrite(opened.file.get(), bytes.data + done, bytes.size_bytes - done, static_cast<off_t>(offset + done));
      if (size < 0 && errno == EINTR) continue;
      if (size < 0)
        return std::unexpected(system_error("write " + object, has_written ? Outcome::unknown : Outcome::definite));
      done += static_cast<std::size_t>(size);
      has_written = true;
    }
  }
  return opened;
}

Result<Unsynced> DataFiles::truncate(const std::string& object, std::uint64_t size_bytes) const {
  LCCFS_TRY(auto file, open_existing(data_, object, O_WRONLY));
  if (!file) return Unsynced{{}, true};  // the removal by a process that was killed may not be durable yet
  struct stat status {};
  if (::fstat(file->get(), &status) != 0) return std::unexpected(system_error("look at " + object));
  if (static_cast<std::uint64_t>(status.st_size) > size_bytes &&
      ::ftruncate(file->get(), static_cast<off_t>(size_bytes)) != 0)
    return std::unexpected(system_error("truncate " + object));
  // Synced even when it was short enough: a shortening by a process that was killed may not be durable yet.
  return Unsynced{std::move(*file), false};
}

Result<Unsynced> DataFiles::remove(const std::string& object) const {
  if (::unlinkat(data_, path_of(object).c_str(), 0) != 0 && errno != ENOENT)
    return std::unexpected(system_error("remove " + object));
  return Unsynced{{}, true};  // synced even when it was gone already, as above
}

Result<Unsynced> DataFiles::zero(const std::string& object, std::uint64_t offset, std::uint64_t size_bytes) const {
  LCCFS_TRY(auto file, open_existing(data_, object, O_WRONLY));
  if (!file) return Unsynced{{}, true};  // as above
  if (size_bytes != 0) LCCFS_CHECK(punch(file->get(), object, {offset, size_bytes}));
  return Unsynced{std::move(*file), false};
}

Result<Unsynced> DataFiles::copy(const std::string& source, const std::string& target) const {
  LCCFS_TRY(const auto from, open_existing(data_, source, O_RDONLY));
  if (!from) return failure(ErrorCode::not_found, source + ": no such object");
  struct stat status {};
  if (::fstat(from->get(), &status) != 0) return std::unexpected(system_error("look at " + source));
  const auto end = static_cast<std::uint64_t>(status.st_size);
  LCCFS_TRY(const auto data, extents_of(from->get(), source, {0, end}));
  LCCFS_TRY(auto opened, open_to_write(target));
  const auto what = source + " to " + target;
  std::uint64_t at = 0;
  for (const DataExtent& extent : data) {
    if (extent.offset > at) LCCFS_CHECK(punch(opened.file.get(), target, {at, extent.offset - at}));
    LCCFS_CHECK(copy_bytes(from->get(), opened.file.get(), extent, what));
    at = extent.offset + extent.size_bytes;
  }
  if (end > at) LCCFS_CHECK(punch(opened.file.get(), target, {at, end - at}));
  if (::ftruncate(opened.file.get(), static_cast<off_t>(end)) != 0)
    return std::unexpected(system_error("truncate " + target, Outcome::unknown));
  return opened;
}

Result<std::vector<DataExtent>> DataFiles::extents(const std::string& object, std::uint64_t offset,
                                                   std::uint64_t size_bytes) const {
  LCCFS_TRY(const auto file, open_existing(data_, object, O_RDONLY));
  if (!file) return std::vector<DataExtent>{};
  return extents_of(file->get(), object, {offset, size_bytes});
}

Result<> DataFiles::sync(const std::string& object, const Unsynced& changes) const {
  if (changes.file && ::fdatasync(changes.file.get()) != 0)
    return std::unexpected(system_error("sync " + object, Outcome::unknown));
  if (!changes.directory) return {};
  const Descriptor directory(::openat(data_, directory_of(object).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory && errno == ENOENT) return {};  // nothing was ever in it
  if (!directory) return std::unexpected(system_error("sync the directory of " + object, Outcome::unknown));
  LCCFS_CHECK(sync_directory(directory.get(), "the directory of " + object));
  if (has_unsynced_name(directory.get())) LCCFS_CHECK(sync_directory(data_, "data"));
  note_synced_name(directory.get());
  if (changes.file) note_synced_name(changes.file.get());
  return {};
}

Result<std::vector<std::string>> DataFiles::names(unsigned& directory, unsigned end) const {
  for (; directory < end; ++directory) {
    const auto folder = directory_name(directory);
    auto found = names_in(data_, folder, "list data objects");
    if (found) LCCFS_CHECK(check_folder(folder, *found));
    if (found || found.error().code != ErrorCode::not_found) return found;
  }
  return std::vector<std::string>();
}

}  // namespace lccfs::local
