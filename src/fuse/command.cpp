// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

#include "fuse/mount_table.h"
#include "options/command_line.h"

namespace lccfs::fuse {

namespace po = boost::program_options;

namespace {

constexpr const char* examples = R"(
Examples:
  lccfs-fuse -c /etc/ceph/ceph.conf -p vms -m /mnt        a volume in the Ceph pool "vms"
  lccfs-fuse --local /srv/volume --create -m /mnt         one in a directory, made if it is not there
  lccfs-fuse -p vms -n nova -m /mnt -o ro -f              read-only, in the foreground
  fusermount3 -u /mnt                                     unmount (or: umount /mnt)

Options of -o: ro, nosuid, nodev, noexec, allow_other, nogc, entry_timeout=SECONDS, attr_timeout=SECONDS.
)";

options::Description mount_description() {
  options::Description description("Mount");
  const auto text = [] { return po::value<std::string>(); };
  description.add_options()                                                                                           //
      ("mountpoint,m", text()->value_name("DIRECTORY"), "where to mount it")                                          //
      ("options,o", po::value<std::vector<std::string>>()->value_name("LIST"), "mount options, separated by commas")  //
      ("create", "make the volume first if there is none")                                                            //
      ("foreground,f", "stay in the foreground, and log to standard error");
  return description;
}

options::Description description() {
  options::Description all;
  all.add(options::address_options()).add(mount_description()).add(daemon::log_and_other_options());
  return all;
}

}  // namespace

Result<Command> parse_command(const std::vector<std::string>& words) {
  LCCFS_TRY(const options::Values values, options::parse(words, description()));
  Command command;
  if (values.contains("help")) command.what = Command::What::help;
  if (values.contains("version")) command.what = Command::What::version;
  if (command.what != Command::What::mount) return command;
  LCCFS_TRY(command.address, options::address_of(values));
  if (!values.contains("mountpoint")) return failure(ErrorCode::invalid, "where to mount it? Give -m DIRECTORY");
  command.mountpoint = options::absolute_path(values["mountpoint"].as<std::string>());
  command.options.allow_other = geteuid() == 0;
  if (values.contains("options")) {
    for (const std::string& list : values["options"].as<std::vector<std::string>>())
      LCCFS_CHECK(add_mount_options(list, command.options));
  }
  command.foreground = values.contains("foreground");
  command.create = values.contains("create");
  LCCFS_TRY(command.log, daemon::log_options_of(values, command.foreground));
  return command;
}

std::string help_text() {
  std::ostringstream text;
  text << "Usage: lccfs-fuse VOLUME -m DIRECTORY [OPTION]...\n"
       << "Mounts an LCCFS volume, and returns when the mount is ready.\n\n"
       << description() << examples;
  return text.str();
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
