// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/process_rights.h"

#include <sys/stat.h>

#include <cstdint>
#include <fstream>
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

bool is_in_our_namespace(pid_t process) {
  struct stat ours = {}, theirs = {};
  return stat("/proc/self/ns/user", &ours) == 0 && stat((folder_of(process) + "/ns/user").c_str(), &theirs) == 0 &&
         ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
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
  std::uint64_t capabilities = 0;
  status_of(process, "CapEff:") >> std::hex >> capabilities;
  if ((capabilities >> capability & 1) == 0) return false;
  return is_in_our_namespace(process) || (is_mapped(process, "uid_map", user) && is_mapped(process, "gid_map", group));
}

bool is_member_of(pid_t process, gid_t group) {
  auto groups = status_of(process, "Groups:");
  for (gid_t one = 0; groups >> one;) {
    if (one == group) return true;
  }
  return false;
}

}  // namespace lccfs
