// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs-fuse: mounts a volume.
#include <unistd.h>

#include <iostream>

#include "base/log.h"
#include "base/program.h"
#include "daemon/background.h"
#include "daemon/end_signals.h"
#include "fuse/collector_thread.h"
#include "fuse/command.h"
#include "fuse/exit_status.h"
#include "fuse/session.h"
#include "lccfs/volume.h"

namespace lccfs::fuse {
namespace {

constexpr daemon::Program program{.name = "lccfs-fuse",
                                  .system_error = exit_system_error,
                                  .internal_error = exit_internal_error,
                                  .interrupted = exit_interrupted};

int complain(const std::string& line, int status) {
  print_error(program.name, line);
  return status;
}

FileSystemOptions file_system_options(const Command& command) {
  FileSystemOptions options;
  options.read_only = command.options.read_only;
  options.mount_id = command.mountpoint;
  options.entry_ttl = command.options.entry_ttl.value_or(options.entry_ttl);
  options.attributes_ttl = command.options.attributes_ttl.value_or(options.attributes_ttl);
  return options;
}

SessionOptions session_options(const Command& command) {
  SessionOptions options;
  options.mountpoint = command.mountpoint;
  options.source = source_of(command.address);
  options.read_only = command.options.read_only;
  options.no_suid = command.options.no_suid;
  options.no_dev = command.options.no_dev;
  options.no_exec = command.options.no_exec;
  options.allow_other = command.options.allow_other;
  return options;
}

StoreOptions store_options(const Command& command) {
  StoreOptions options;
  options.create = command.create;
  return options;
}

Result<std::unique_ptr<FileSystem>> open_volume(const Command& command) {
  LCCFS_TRY(std::shared_ptr<ObjectStore> store, open_store(command.address, store_options(command)));
  const FileSystemOptions options = file_system_options(command);
  auto fs = mount_volume(store, system_clock(), options);
  if (fs || fs.error().code != ErrorCode::not_found) return fs;
  if (!command.create)
    return failure(ErrorCode::not_found, "there is no volume at " + command.address.describe() +
                                             "; make one with: lccfs mkfs, or mount with --create");
  LCCFS_CHECK(make_volume(*store, system_clock(), {}));
  if (const Result<> told = store->announce(); !told) log::warning(told.error().context);
  return mount_volume(store, system_clock(), options);
}

Result<> serve(FileSystem& fs, const Command& command, daemon::Background& background, daemon::EndSignals& signals) {
  LCCFS_TRY(const std::unique_ptr<Session> session, Session::mount(fs, system_clock(), session_options(command)));
  signals.handle_with([&session] { session->end(); });
  std::jthread collector;
  if (command.options.collect_garbage && !command.options.read_only) {
    collector = start_collector_thread(fs, system_clock());
  }
  const Result<> served = session->serve([&] {
    log::info("mounted " + command.address.describe() + " on " + command.mountpoint);
    background.ready();
  });
  signals.handle_with([] {});
  return served;
}

int mount_and_serve(const Command& command, daemon::Background& background) {
  if (const auto opened = daemon::open_log(command.log, program.name); !opened)
    return complain(opened.error().context, exit_system_error);
  daemon::EndSignals signals(program, daemon::EndSignals::Hangup::reopens_log);
  const auto fs = open_volume(command);
  if (!fs) return complain(fs.error().context, exit_mount_failure);
  signals.hold();
  const Result<> served = serve(**fs, command, background, signals);
  const Result<> ended = (*fs)->unmount();
  if (!served) {
    log::error(served.error().context);
    return complain(served.error().context, exit_mount_failure);
  }
  if (!ended) {
    log::error("the mount on " + command.mountpoint + " has not ended cleanly: " + ended.error().context);
    return exit_mount_failure;
  }
  log::info("unmounted " + command.mountpoint);
  return exit_success;
}

int run(const std::vector<std::string>& words) {
  auto command = parse_command(words);
  if (!command) return complain(command.error().context + " (lccfs-fuse --help)", exit_usage);
  if (command->what == Command::What::help) {
    std::cout << help_text();
    return exit_success;
  }
  if (command->what == Command::What::version) {
    std::cout << "lccfs-fuse " LCCFS_VERSION "\n";
    return exit_success;
  }
  auto mountpoint = check_mountpoint(command->mountpoint);
  if (!mountpoint) return complain(mountpoint.error().context, exit_mount_failure);
  command->mountpoint = *mountpoint;
  if (access("/dev/fuse", R_OK | W_OK) != 0)
    return complain("cannot use /dev/fuse; load the kernel's module with: modprobe fuse", exit_system_error);
  daemon::Background background(program);
  if (!command->foreground) {
    if (const auto status = background.fork()) return *status;
  }
  return mount_and_serve(*command, background);
}

}  // namespace
}  // namespace lccfs::fuse

int main(int argc, char** argv) {
  return lccfs::run_program(argc, argv, "lccfs-fuse", {lccfs::fuse::exit_system_error, lccfs::fuse::exit_mount_failure},
                            lccfs::fuse::run);
}
