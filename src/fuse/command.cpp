// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "fuse/mount_table.h"

namespace lccfs::fuse {

namespace {

constexpr const char* footer = R"(Examples:
  lccfs-fuse -c /etc/ceph/ceph.conf -p vms -m /mnt        a volume in the Ceph pool "vms"
  lccfs-fuse --local /srv/volume --create -m /mnt         one in a directory, made if it is not there
  lccfs-fuse -p vms -n nova -m /mnt -o ro -f              read-only, in the foreground
  fusermount3 -u /mnt                                     unmount (or: umount /mnt)

Options of -o: ro, nosuid, nodev, noexec, allow_other, nogc, entry_timeout=SECONDS, attr_timeout=SECONDS,
readahead=SIZE, dirty_limit=SIZE, idle_leases=N.)";

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
  line.flag("--create", command.create, "make the volume first if there is none");
  line.flag("-f,--foreground", command.foreground, "stay in the foreground, and log to standard error");
  line.check([&command]() -> Result<> {
    if (!command.mountpoint.empty()) return {};
    return failure(ErrorCode::invalid, "where to mount it? Give -m DIRECTORY");
  });
  daemon::add_log_options(line, command.log, command.foreground);
  LCCFS_TRY(command.answer, line.parse(words));
  return command;
}

std::string source_of(const VolumeAddress& address) {
  if (!address.local_directory.empty()) return address.local_directory;
  return address.pool + (address.pool_namespace.empty() ? "" : "/" + address.pool_namespace);
}

Result<std::string> check_mountpoint(const std::string& path) {
  const auto free_of_fuse = [](const std::string& directory) -> Result<> {
    const auto entry = mounted_at(directory);
    if (!entry || !entry->type.starts_with("fuse")) return {};
    return failure(ErrorCode::busy, directory + " is busy: " + entry->type +
                                        " is mounted there; unmount it with: fusermount3 -u " + directory);
  };
  LCCFS_CHECK(free_of_fuse(path));  // first: a mount whose program is gone or stuck answers nothing below
  const std::unique_ptr<char, decltype(&std::free)> resolved(realpath(path.c_str(), nullptr), &std::free);
  if (!resolved && errno == ENOENT)
    return failure(ErrorCode::not_found, "the mountpoint " + path + " does not exist; make it with: mkdir -p " + path);
  struct stat values = {};
  if (!resolved || stat(resolved.get(), &values) != 0)
    return failure(ErrorCode::io, "the mountpoint " + path + " cannot be used: " + std::strerror(errno));
  if (!S_ISDIR(values.st_mode))
    return failure(ErrorCode::not_directory, path + " is not a directory; a volume is mounted on a directory");
  LCCFS_CHECK(free_of_fuse(resolved.get()));
  return std::string(resolved.get());
}

}  // namespace lccfs::fuse
