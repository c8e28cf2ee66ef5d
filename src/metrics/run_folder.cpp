// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics/run_folder.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/descriptor.h"

namespace lccfs::metrics {

namespace {

/// A path leads to its socket from every network and process namespace. A listener that has no room for more, or is
/// another user's, is there: the kernel has other errors for these.
bool is_dead_socket(const std::string& path) {
  struct stat values = {};
  if (::lstat(path.c_str(), &values) != 0 || !S_ISSOCK(values.st_mode)) return false;  // it refuses for a file, too
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  const Descriptor asking(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return asking && ::connect(asking.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace

std::string run_folder() {
  if (geteuid() == 0) return "/run/lccfs";
  const char* own = std::getenv("XDG_RUNTIME_DIR");
  return own == nullptr || *own != '/' ? "" : std::string(own) + "/lccfs";
}

/// A process that has the number of the dead one may put its own there at any time. What was taken aside is looked at
/// again, where nobody replaces it.
void remove_dead_socket(const std::string& path) {
  if (!is_dead_socket(path)) return;
  const std::filesystem::path its(path);
  const std::string aside = its.parent_path() / ("." + its.filename().string() + "." + std::to_string(getpid()));
  if (std::rename(path.c_str(), aside.c_str()) != 0) return;
  if (is_dead_socket(aside)) {
    ::unlink(aside.c_str());
  } else {
    std::rename(aside.c_str(), path.c_str());
  }
}

void remove_dead_sockets(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(".sock") && !name.starts_with('.')) remove_dead_socket(entry->path().string());
  }
}

}  // namespace lccfs::metrics
