// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/process_rights.h"

#include <sys/stat.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace lccfs {

namespace {

std::string folder_of(pid_t process) { return "/proc/" + std::to_string(process); }

/// What follows that word in the process's status.
std::istringstream status_of(pid_t process, const std::string& word) {
  std::ifstream status(folder_of(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(word)) return std::istringstream(line.substr(word.size()));
  }
  return {};
}

/// nullopt: it is gone, or we may not know.
std::optional<bool> has(pid_t process, unsigned capability) {
  std::uint64_t capabilities = 0;
  if (!(status_of(process, "CapEff:") >> std::hex >> capabilities)) return std::nullopt;
  return (capabilities >> capability & 1) != 0;
}

/// The same.
std::optional<bool> is_in_our_namespace(pid_t process) {
  struct stat ours = {}, theirs = {};
  if (stat("/proc/self/ns/user", &ours) != 0) return std::nullopt;
  if (stat((folder_of(process) + "/ns/user").c_str(), &theirs) != 0) return std::nullopt;
  return ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

/// `map`: "uid_map" or "gid_map", in lines of: the first there, the first here, how many.
bool is_mapped(pid_t process, const char* map, std::uint64_t id) {
  std::ifstream lines(folder_of(process) + "/" + map);
  for (std::uint64_t theirs = 0, ours = 0, count = 0; lines >> theirs >> ours >> count;) {
    if (ours <= id && id - ours < count) return true;
  }
  return false;
}

}  // namespace

bool is_capable(pid_t process, unsigned capability, uid_t user, gid_t group) {
  if (!has(process, capability).value_or(false)) return false;
  return is_in_our_namespace(process).value_or(false) ||
         (is_mapped(process, "uid_map", user) && is_mapped(process, "gid_map", group));
}

std::optional<bool> is_capable_here(pid_t process, unsigned capability) {
  const auto has_it = has(process, capability);
  return has_it.value_or(false) ? is_in_our_namespace(process) : has_it;
}

bool is_member_of(pid_t process, gid_t group) {
  auto groups = status_of(process, "Groups:");
  for (gid_t one = 0; groups >> one;) {
    if (one == group) return true;
  }
  return false;
}

}  // namespace lccfs
