// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/process_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

extern "C" {  // glibc 2.36 forgot it
#include <sys/pidfd.h>
}

#include "base/process_stat.h"
#include "store/local/descriptor.h"

namespace lccfs::local {
namespace {

constexpr std::size_t id_digits = 32;

bool shows_lock(const std::filesystem::path& fdinfo) {
  std::ifstream file(fdinfo);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("lock:") && line.find("FLOCK") != std::string::npos && line.find("WRITE") != std::string::npos)
      return true;
  return false;
}

/// Whether some descriptor of that process has the file open and locked. Needs to be of its user, or CAP_SYS_PTRACE.
Result<bool> holds_lock(pid_t pid, int file) {
  struct stat wanted {};
  const std::filesystem::path process = "/proc/" + std::to_string(pid);
  if (::fstat(file, &wanted) != 0) return std::unexpected(system_error("look at a client's file"));
  std::error_code error;
  std::filesystem::directory_iterator descriptors(process / "fd", error);
  if (error)
    return std::unexpected(
        system_error("look at what process " + std::to_string(pid) + " has open", Outcome::definite, error.value()));
  for (; !error && descriptors != std::filesystem::directory_iterator(); descriptors.increment(error)) {
    struct stat found {};
    if (::stat(descriptors->path().c_str(), &found) != 0) continue;
    const bool same = found.st_dev == wanted.st_dev && found.st_ino == wanted.st_ino;
    if (same && shows_lock(process / "fdinfo" / descriptors->path().filename())) return true;
  }
  return false;
}

}  // namespace

Result<ClientIdentity> make_identity() {
  ClientIdentity identity;
  std::ifstream("/proc/sys/kernel/random/uuid") >> identity.id;
  std::erase(identity.id, '-');
  identity.pid = ::getpid();
  const auto stat = read_process_stat(std::to_string(identity.pid));
  if (identity.id.size() != id_digits || !stat || stat->start_ticks == 0)
    return failure(ErrorCode::io, "cannot read a new id and this process's start time from /proc");
  identity.start_ticks = stat->start_ticks;
  return identity;
}

Bytes encode(const ClientIdentity& identity) {
  return identity.id + ' ' + std::to_string(identity.pid) + ' ' + std::to_string(identity.start_ticks);
}

Result<ClientIdentity> decode_identity(const Bytes& bytes) {
  ClientIdentity identity;
  std::istringstream text(bytes);
  text >> identity.id >> identity.pid >> identity.start_ticks;
  const bool only_digits = identity.id.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!text || identity.id.size() != id_digits || !only_digits || identity.pid <= 0 || encode(identity) != bytes)
    return failure(ErrorCode::invalid, "not the identity of a client of a local volume");
  return identity;
}

Result<bool> kill_holder(pid_t pid, int locked_file) {
  const Descriptor process(::pidfd_open(pid, 0));
  if (!process && errno == ESRCH) return false;
  const std::string what = "kill process " + std::to_string(pid);
  if (!process) return std::unexpected(system_error(what));
  const auto holds = holds_lock(pid, locked_file);  // looked at after pidfd_open: it pins the process
  if (!holds && holds.error().code == ErrorCode::not_found) return false;
  if (!holds || !*holds) return holds;
  if (::pidfd_send_signal(process.get(), SIGKILL, nullptr, 0) != 0 && errno != ESRCH)
    return std::unexpected(system_error(what));
  return true;
}

}  // namespace lccfs::local
