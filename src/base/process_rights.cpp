// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/process_rights.h"

#include <linux/capability.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace lccfs {

namespace {

/// What follows that word in the process's status.
std::istringstream status_of(pid_t process, const std::string& word) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(word)) return std::istringstream(line.substr(word.size()));
  }
  return {};
}

}  // namespace

bool may_act_for_owners(pid_t process) {
  std::uint64_t capabilities = 0;
  status_of(process, "CapEff:") >> std::hex >> capabilities;
  return (capabilities >> CAP_FOWNER & 1) != 0 || (capabilities >> CAP_CHOWN & 1) != 0;
}

bool is_member_of(pid_t process, gid_t group) {
  auto groups = status_of(process, "Groups:");
  for (gid_t one = 0; groups >> one;) {
    if (one == group) return true;
  }
  return false;
}

}  // namespace lccfs
