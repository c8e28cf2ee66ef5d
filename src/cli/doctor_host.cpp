// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <sstream>

#include "base/fuse_device.h"
#include "cli/doctor_checks.h"

namespace lccfs::cli {

namespace {

std::optional<std::string> content_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The first line that sets it, and is no comment.
std::optional<std::string> line_with(const std::string& text, const std::string& word) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find_first_not_of(" \t");
    if (first != std::string::npos && line[first] != '#' && line.compare(first, word.size(), word) == 0) return line;
  }
  return std::nullopt;
}

void check_fuse(Diagnosis& diagnosis, const std::string& root, bool is_root) {
  if (const auto trouble = trouble_with_fuse(root)) {
    diagnosis.fail("FUSE", trouble->seen, trouble->advice);
  } else {
    utsname kernel = {};
    uname(&kernel);
    diagnosis.ok("FUSE", "/dev/fuse can be used, Linux " + std::string(kernel.release));
  }
  const auto conf = content_of(root + "/etc/fuse.conf");
  if (is_root || (conf && line_with(*conf, "user_allow_other"))) {
    diagnosis.ok("allow_other", is_root ? "root may let other users in" : "user_allow_other is set");
  } else {
    diagnosis.warn("allow_other", "only root may mount for other users",
                   "write user_allow_other into /etc/fuse.conf, or mount as root");
  }
}

void check_libvirt(Diagnosis& diagnosis, const std::string& root) {
  const auto conf = content_of(root + "/etc/libvirt/qemu.conf");
  if (!conf) return diagnosis.ok("libvirt", "not installed here");
  if (const auto line = line_with(*conf, "shared_filesystems")) return diagnosis.ok("libvirt", *line);
  diagnosis.warn("libvirt", "shared_filesystems is not set in /etc/libvirt/qemu.conf",
                 "write there shared_filesystems = [ \"MOUNTPOINT\" ]: else libvirt takes no FUSE mount for shared, "
                 "and live migration is refused or changes the owner of disks in use");
}

/// The hypervisor's user must be the same on all hosts: the volume keeps numbers.
void check_users(Diagnosis& diagnosis, const std::string& root) {
  const auto users = content_of(root + "/etc/passwd");
  for (const char* name : {"libvirt-qemu:", "qemu:"}) {
    const auto line = users ? line_with(*users, name) : std::nullopt;
    if (!line) continue;
    std::istringstream fields(*line);
    std::string user, password, uid, gid;
    std::getline(std::getline(std::getline(std::getline(fields, user, ':'), password, ':'), uid, ':'), gid, ':');
    std::string seen = std::move(user);
    seen.append(" has uid ").append(uid).append(" and gid ").append(gid);
    return diagnosis.ok("hypervisor's user", seen.append(" here; they must be the same on all hosts"));
  }
}

void check_security(Diagnosis& diagnosis, const std::string& root) {
  const auto app_armor = content_of(root + "/sys/module/apparmor/parameters/enabled");
  const auto selinux = content_of(root + "/sys/fs/selinux/enforce");
  if (app_armor && app_armor->starts_with("Y"))
    diagnosis.ok("AppArmor", "enabled; libvirt lets each guest at its own disks, wherever they are");
  if (!selinux || !selinux->starts_with("1")) return;
  const auto allowed = content_of(root + "/sys/fs/selinux/booleans/virt_use_fusefs");
  if (allowed && allowed->starts_with("1")) return diagnosis.ok("SELinux", "virt_use_fusefs is on");
  diagnosis.fail("SELinux", "enforcing, and guests may not use FUSE mounts", "run: setsebool -P virt_use_fusefs on");
}

}  // namespace

void check_host(Diagnosis& diagnosis, const std::string& root, bool is_root) {
  check_fuse(diagnosis, root, is_root);
  check_libvirt(diagnosis, root);
  check_users(diagnosis, root);
  check_security(diagnosis, root);
}

}  // namespace lccfs::cli
