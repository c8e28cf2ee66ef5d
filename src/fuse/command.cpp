// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/command.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "fuse/mount_lock.h"
#include "fuse/mount_table.h"

namespace lccfs::fuse {

namespace {

constexpr const char* footer = R"(Examples:
  lccfs-fuse -c /etc/ceph/ceph.conf -p vms -m /mnt        a volume in the Ceph pool "vms"
  lccfs-fuse --local /srv/volume --create -m /mnt         one in a directory, made if it is not there
  lccfs-fuse -p vms -n nova -m /mnt -o ro -f              read-only, in the foreground
  fusermount3 -u /mnt                                     unmount (or: umount /mnt)

Options of -o: ro, nosuid, nodev, noexec, allow_other, nogc, subdir=PATH, end_when_fenced, entry_timeout=SECONDS,
attr_timeout=SECONDS, readahead=SIZE, dirty_limit=SIZE, idle_leases=N, names=behind|leased|sync, names_memory=SIZE,
metrics_port=PORT, metrics_address=ADDRESS, slow_ms=MILLISECONDS.)";

}  // namespace

Result<Command> parse_command(const std::vector<std::string>& words) {
  Command command;
  command.options.allow_other = geteuid() == 0;
  options::CommandLine line({.name = "lccfs-fuse",
                             .usage = "VOLUME -m DIRECTORY [OPTION]...",
                             .summary = "Mounts an LCCFS volume, and returns when the mount is ready.",
                             .footer = footer});
  options::add_address(line, command.address);
  line.group("Mount");
  line.option("-m,--mountpoint", "DIRECTORY", options::path(command.mountpoint), "where to mount it");
  const auto add = [&command](const std::string& list) { return add_mount_options(list, command.options); };
  line.option("-o,--options", "LIST", add, "mount options, separated by commas", true);
  line.configurable(options::CommandLine::Section::of_program, {"--options"});
  line.flag("--create", command.create, "make the volume first if there is none");
  line.flag("-f,--foreground", command.foreground, "stay in the foreground, and log to standard error");
  line.check([&command]() -> Result<> {
    if (!command.mountpoint.empty()) return {};
    return failure(ErrorCode::invalid, "where to mount it? Give -m DIRECTORY");
  });
  daemon::add_monitor_options(line, command.options.monitor);
  daemon::add_log_options(line, command.log, command.foreground);
  LCCFS_TRY(command.answer, line.parse(words));
  return command;
}

/// `mount -a` looks for a directory that fstab names as what that leads to; DIRECTORY:/PATH it takes as it stands there.
std::string source_of(const VolumeAddress& address, const std::string& subdirectory) {
  if (subdirectory != "/") return address.source() + ":" + subdirectory;
  std::error_code error;
  const auto directory = std::filesystem::canonical(address.local_directory, error);
  return error ? address.source() : directory.string();
}

namespace {

/// A mount that nothing serves any more answers ENOTCONN at once; one that is alive, or stuck, is not asked. Of statfs
/// the kernel remembers no answer.
bool is_dead(const MountEntry& entry, const std::string& path, const std::string& locks) {
  struct statvfs values = {};
  return entry.type == "fuse.lccfs" && MountLock::is_free(locks, entry.device) && statvfs(path.c_str(), &values) != 0 &&
         errno == ENOTCONN;
}

std::unexpected<Error> busy(const std::string& directory, const std::string& type) {
  return failure(ErrorCode::busy, directory + " is busy: " + type + " is mounted there; unmount it with: " +
                                      (geteuid() == 0 ? "umount " : "fusermount3 -u ") + directory);
}

Result<> clear(const std::string& directory, const std::string& locks) {
  for (;;) {
    const auto entry = mounted_at(directory);
    if (!entry || !entry->type.starts_with("fuse")) return {};
    if (!is_dead(*entry, directory, locks) || umount2(directory.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0)
      return busy(directory, entry->type);
  }
}

bool lies_in(const std::filesystem::path& path, const std::filesystem::path& directory) {
  return std::ranges::mismatch(path, directory).in2 == directory.end();
}

}  // namespace

Result<std::string> check_mountpoint(const std::string& path, const std::string& locks) {
  LCCFS_CHECK(clear(path, locks));  // first: a mount whose program is gone or stuck answers nothing below
  const std::unique_ptr<char, decltype(&std::free)> resolved(realpath(path.c_str(), nullptr), &std::free);
  if (!resolved && errno == ENOENT)
    return failure(ErrorCode::not_found, "the mountpoint " + path + " does not exist; make it with: mkdir -p " + path);
  struct stat values = {};
  if (!resolved || stat(resolved.get(), &values) != 0)
    return failure(ErrorCode::io, "the mountpoint " + path + " cannot be used: " + std::strerror(errno));
  if (!S_ISDIR(values.st_mode))
    return failure(ErrorCode::not_directory, path + " is not a directory; a volume is mounted on a directory");
  LCCFS_CHECK(clear(resolved.get(), locks));
  return std::string(resolved.get());
}

Result<> check_apart(const std::string& mountpoint, const std::string& local_directory) {
  if (local_directory.empty()) return {};
  std::error_code error;  // what is not there yet, as with --create, is no mountpoint
  const auto volume = std::filesystem::canonical(local_directory, error);
  if (error) return {};
  const char* relation = mountpoint == volume          ? " is"
                         : lies_in(mountpoint, volume) ? " is in"
                         : lies_in(volume, mountpoint) ? " would hide"
                                                       : nullptr;
  if (relation == nullptr) return {};
  return failure(ErrorCode::invalid,
                 "the mountpoint " + mountpoint + relation + " the volume's own directory; choose another");
}

}  // namespace lccfs::fuse
