// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs-fuse: mounts a volume.
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <optional>
#include <thread>

#include "base/fuse_device.h"
#include "base/log.h"
#include "base/periodic.h"
#include "base/program.h"
#include "daemon/background.h"
#include "daemon/end_signals.h"
#include "daemon/monitor.h"
#include "fuse/collector_thread.h"
#include "fuse/command.h"
#include "fuse/connection_guard.h"
#include "fuse/mount_lock.h"
#include "fuse/mount_metrics.h"
#include "fuse/mount_table.h"
#include "fuse/session.h"
#include "lccfs/volume.h"
#include "metrics/measured_store.h"
#include "metrics/run_folder.h"

namespace lccfs::fuse {
namespace {

/// As mount(8) has them.
constexpr Program program{.name = "lccfs-fuse",
                          .failed = 32,
                          .usage = 1,
                          .output_lost = 2,
                          .system_error = 2,
                          .internal_error = 4,
                          .interrupted = 8};

/// docs/NAMES.md section 3.
constexpr unsigned lease_after_changes = 4;
constexpr std::chrono::seconds fenced_end_limit{30};

/// What the parts of a mount share, each from its beginning.
struct Running {
  std::shared_ptr<ConnectionGuard> guard;
  std::shared_ptr<MountMetrics> metrics;
  std::unique_ptr<daemon::Monitor> monitor;
};

FileSystemOptions file_system_options(const Command& command) {
  FileSystemOptions options;
  options.read_only = command.options.read_only;
  options.mount_id = command.mountpoint;
  options.dirty_limit_bytes = command.options.dirty_limit_bytes;
  options.idle_leases = command.options.idle_leases;
  options.lease_after_changes = command.options.names == Names::sync ? 0 : lease_after_changes;
  options.names_behind = command.options.names == Names::behind;
  options.names_memory_bytes = command.options.names_memory_bytes;
  options.entry_ttl = command.options.entry_ttl;
  options.attributes_ttl = command.options.attributes_ttl.value_or(options.attributes_ttl);
  return options;
}

/// What a fenced client still waits for may never be answered, and nothing that it sent counts any more: a service
/// manager waits for the end of the process, to mount anew.
void end_process_within(std::chrono::seconds limit, std::string mountpoint) {
  std::thread([limit, mountpoint = std::move(mountpoint)] {
    std::this_thread::sleep_for(limit);
    log::error("the mount on " + mountpoint + " was fenced, and waits for objects that do not answer: it ends at once");
    log::flush();
    _exit(program.failed);
  }).detach();
}

SessionOptions session_options(const Command& command, const Running& running) {
  SessionOptions options;
  options.metrics = running.metrics;
  options.guard = running.guard;
  options.mountpoint = command.mountpoint;
  options.source = source_of(command.address, command.options.subdirectory);
  options.subdirectory = command.options.subdirectory;
  options.end_when_fenced = command.options.end_when_fenced;
  options.about_to_end_as_fenced = [&command] { end_process_within(fenced_end_limit, command.mountpoint); };
  options.read_only = command.options.read_only;
  options.no_suid = command.options.no_suid;
  options.no_dev = command.options.no_dev;
  options.no_exec = command.options.no_exec;
  options.allow_other = command.options.allow_other;
  options.readahead_bytes = command.options.readahead_bytes.value_or(options.readahead_bytes);
  return options;
}

/// What it measures outlives the file system, and its store.
Result<std::unique_ptr<FileSystem>> open_volume(const Command& command, MountMetrics& metrics,
                                                std::shared_ptr<ObjectStore>& store) {
  LCCFS_TRY(auto opened, open_store(command.address, {.step_timeout = {}, .create = command.create}));
  store = metrics::measured(std::move(opened), metrics.store);
  const FileSystemOptions options = file_system_options(command);
  auto fs = mount_volume(store, system_clock(), options);
  if (fs || fs.error().code != ErrorCode::not_found) return fs;
  if (!command.create)
    return failure(ErrorCode::not_found, command.address.no_volume().context + ", or mount with --create");
  const auto made = make_volume(*store, system_clock(), {});
  if (!made && made.error().code != ErrorCode::exists) return std::unexpected(made.error());
  if (const Result<> told = made ? store->announce() : Result<>(); !told) log::warning(told.error().context);
  fs = mount_volume(store, system_clock(), options);  // another mount may have made it
  const bool is_none = !fs && fs.error().code == ErrorCode::not_found;
  return is_none && !made ? std::unexpected(made.error()) : std::move(fs);
}

/// What umount.lccfs waits for, and that umount(8) calls it. A mount serves without them, too.
std::optional<MountLock> lock_mount(const std::string& device, const std::string& mountpoint) {
  auto lock = MountLock::take(metrics::run_folder(), device);
  if (!lock) {
    log::warning("umount(8) will not wait until everything is stored: " + lock.error().context);
    return std::nullopt;
  }
  if (geteuid() == 0 && !note_umount_helper(mountpoint)) {
    log::warning(
        "umount(8) may not wait until everything is stored, umount.lccfs(8) will: cannot write "
        "/run/mount/utab");
  }
  return std::move(*lock);
}

/// Its pass may wait for an object that does not answer: the files are stored meanwhile.
void end_collector(std::jthread collector, FileSystem& fs) {
  if (!collector.joinable()) return;
  const auto ticks = run_each_second(system_clock(), [&fs] { fs.tick(); });
  collector.request_stop();
  collector.join();
}

/// `was_ready`: anything may have been answered. Else, where that is no error, a signal came before.
Result<> serve(FileSystem& fs, const Command& command, daemon::Background& background, daemon::EndSignals& signals,
               std::optional<MountLock>& mount_lock, Running running, bool& was_ready) {
  Descriptor mounting;
  const auto about_to_mount = [&]() -> Result<> {
    mounting = lock_mounting(metrics::run_folder(), system_clock());
    // While nothing is mounted, a signal need not wait for the store, which may be away.
    signals.hold();
    // Looked at again: while the volume was waited for, another may have been mounted there.
    const auto mountpoint = check_mountpoint(command.mountpoint, metrics::run_folder());
    return mountpoint ? Result<>() : std::unexpected(mountpoint.error());
  };
  LCCFS_TRY(const std::unique_ptr<Session> session,
            Session::mount(fs, system_clock(), session_options(command, running), about_to_mount));
  if (auto lock = lock_mount(session->device(), command.mountpoint)) mount_lock.emplace(std::move(*lock));
  mounting = Descriptor();
  signals.handle_with([&session] { session->end(); });
  std::jthread collector;
  if (command.options.collect_garbage && !command.options.read_only) {
    collector = start_collector_thread(fs, system_clock(), running.metrics->collector);
  }
  running.monitor->serve({program.name, command.address.source(), command.mountpoint},
                         [&](metrics::Exposition& page) { running.metrics->write(page, fs); });
  Result<> served = session->serve([&] {
    was_ready = true;
    log::info("mounted " + command.address.describe() + " on " + command.mountpoint);
    background.ready();
  });
  signals.handle_with([] {});
  end_collector(std::move(collector), fs);
  running.monitor.reset();
  if (geteuid() == 0) forget_umount_helper(command.mountpoint);
  return served;
}

int serve_and_unmount(FileSystem& fs, const Command& command, daemon::Background& background,
                      daemon::EndSignals& signals, std::optional<MountLock>& mount_lock, Running running) {
  bool was_ready = false;
  const auto served = serve(fs, command, background, signals, mount_lock, std::move(running), was_ready);
  signals.handle_with([was_ready] {
    if (was_ready) return;  // what was answered is stored first; a second signal ends the program
    log::flush();
    _exit(program.interrupted);
  });
  if (!served) {
    log::error(served.error().context);
    complain(program, served.error().context, program.failed);
  }
  const Result<> ended = fs.unmount();
  if (!served) return program.failed;
  if (!ended) {
    log::error("the mount on " + command.mountpoint + " has ended with an error: " + ended.error().context);
    return program.failed;
  }
  if (mount_lock) mount_lock->stored();
  if (!was_ready) return complain(program, "interrupted", program.interrupted);
  log::info("unmounted " + command.mountpoint);
  return EXIT_SUCCESS;
}

int mount_and_serve(const Command& command, daemon::Background& background, std::shared_ptr<ConnectionGuard> guard) {
  if (const auto opened = daemon::open_log(command.log, program.name); !opened)
    return complain(program, opened.error().context, program.system_error);
  daemon::EndSignals signals(program, daemon::EndSignals::Hangup::reopens_log);
  std::optional<MountLock> mount_lock;  // released when all of the mount is gone
  const auto slow_after = command.options.monitor.slow_after.value_or(daemon::MonitorOptions::usually_slow_after);
  Running running{.guard = std::move(guard),
                  .metrics = std::make_shared<MountMetrics>(system_clock(), slow_after),
                  .monitor = std::make_unique<daemon::Monitor>()};
  if (const auto listening = running.monitor->listen(command.options.monitor); !listening)
    return complain(program, listening.error().context, program.failed);
  const auto metrics = running.metrics;  // until the store of the file system is gone, too
  std::shared_ptr<ObjectStore> store;
  auto fs = open_volume(command, *metrics, store);
  if (!fs) return complain(program, fs.error().context, program.failed);
  const int status = serve_and_unmount(**fs, command, background, signals, mount_lock, std::move(running));
  fs->reset();
  if (store.use_count() == 1) return status;  // closed here: by no thread that is left behind
  // One still asks the monitors how much space there is (fs/space_looks.h), and uses what is destroyed below.
  log::flush();
  _exit(status);
}

int run(const std::vector<std::string>& words) {
  auto command = parse_command(words);
  if (!command) return complain(program, command.error().context, program.usage);
  if (!command->answer.empty()) return (std::cout << command->answer), EXIT_SUCCESS;
  auto mountpoint = check_mountpoint(command->mountpoint, metrics::run_folder());
  if (!mountpoint) return complain(program, mountpoint.error().context, program.failed);
  command->mountpoint = *mountpoint;
  if (const auto apart = check_apart(command->mountpoint, command->address.local_directory); !apart)
    return complain(program, apart.error().context, program.usage);
  if (const auto trouble = trouble_with_fuse())
    return complain(program, std::string(trouble->seen) + "; " + trouble->advice, program.system_error);
  daemon::Background background(program);
  if (!command->foreground) {
    if (const auto status = background.fork()) return *status;
  }
  return mount_and_serve(*command, background, ConnectionGuard::start());
}

}  // namespace
}  // namespace lccfs::fuse

int main(int argc, char** argv) { return lccfs::run_program(argc, argv, lccfs::fuse::program, lccfs::fuse::run); }
