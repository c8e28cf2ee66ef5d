// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/mount_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace lccfs::fuse {
namespace {

constexpr std::chrono::seconds longest_wait{10};
constexpr std::chrono::milliseconds between_tries{20};

bool write_line(int fd, const std::string& line) {
  return write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace

/// It gets its name when it is locked: a program that finds it may wait for it.
Result<MountLock> MountLock::take(const std::string& folder, const std::string& device) {
  if (folder.empty()) return failure(ErrorCode::not_found, "XDG_RUNTIME_DIR is not set");
  if (device.empty()) return failure(ErrorCode::not_found, "the mount table does not show the mount");
  const std::string pid = std::to_string(getpid());
  const std::string made = folder + "/." + pid, name = folder + "/" + device;
  mkdir(folder.c_str(), 0755);
  unlink(made.c_str());
  MountLock lock(open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (lock.file_ && flock(lock.file_.get(), LOCK_EX | LOCK_NB) == 0 && write_line(lock.file_.get(), pid + "\n") &&
      rename(made.c_str(), name.c_str()) == 0) {
    return lock;
  }
  const int error = errno;
  if (lock.file_) unlink(made.c_str());
  return failure(ErrorCode::io, name + ": " + std::strerror(error));
}

bool MountLock::is_free(const std::string& folder, const std::string& device) {
  const MountLock file(open((folder + "/" + device).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  return file.file_ && flock(file.file_.get(), LOCK_SH | LOCK_NB) == 0;
}

Descriptor lock_mounting(const std::string& folder, Clock& clock) {
  mkdir(folder.c_str(), 0755);
  Descriptor lock(open((folder + "/mounting").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  const auto give_up_at = clock.elapsed() + longest_wait;
  while (lock && flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && clock.elapsed() < give_up_at)
    clock.sleep_for(between_tries);
  return lock;
}

void MountLock::stored() { [[maybe_unused]] const bool written = write_line(file_.get(), "stored\n"); }

}  // namespace lccfs::fuse
