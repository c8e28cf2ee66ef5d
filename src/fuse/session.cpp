// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/session.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/log.h"
#include "base/periodic.h"
#include "base/unmount.h"
#include "fuse/kernel_channel.h"
#include "fuse/mount_table.h"
#include "fuse/operations.h"
#include "fuse/readahead.h"
#include "fuse/subdirectory.h"

namespace lccfs::fuse {
namespace {

constexpr int drain_step_ms = 10;
constexpr std::chrono::seconds tick_period{1};
constexpr std::chrono::seconds write_back_limit{60};  // objects may not answer

std::string last_libfuse_line;  // libfuse says why a mount fails in its log alone, on the thread that mounts

std::string libfuse_line(const char* format, va_list arguments) {
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  return {line, std::strcspn(line, "\n")};
}

void keep_libfuse_line(fuse_log_level, const char* format, va_list arguments) {
  last_libfuse_line = libfuse_line(format, arguments);
}

void log_libfuse_line(fuse_log_level, const char* format, va_list arguments) {
  log::warning("libfuse: " + libfuse_line(format, arguments));
}

/// libfuse takes a comma in a value for the next option.
std::string escape_commas(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == ',' || c == '\\') result.push_back('\\');
    result.push_back(c);
  }
  return result;
}

/// libfuse forbids devices and setuid programs unless told, even to root.
std::string mount_options(const SessionOptions& options) {
  std::string result = "default_permissions,subtype=lccfs,fsname=" + escape_commas(options.source);
  if (options.allow_other) result += ",allow_other";
  if (options.read_only) result += ",ro";
  if (options.no_exec) result += ",noexec";
  result += options.no_suid ? ",nosuid" : ",suid";
  result += options.no_dev ? ",nodev" : ",dev";
  return result;
}

/// Requests are counted whether anybody looks or not.
SessionOptions with_metrics(SessionOptions options, Clock& clock) {
  if (!options.metrics) options.metrics = std::make_shared<MountMetrics>(clock, std::chrono::nanoseconds(0));
  return options;
}

}  // namespace

Session::Session(FileSystem& fs, Clock& clock, const SessionOptions& options)
    : options_(with_metrics(options, clock)),
      serving_(fs, clock, options_.metrics),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Session::~Session() {
  if (notifier_) close();
  if (subdirectory_) serving_.fs.release_directory(*subdirectory_);
  if (session_ != nullptr) fuse_session_destroy(session_);
  ::close(wake_fd_);
}

Result<std::unique_ptr<Session>> Session::mount(FileSystem& fs, Clock& clock, const SessionOptions& options,
                                                const AboutToMount& about_to_mount) {
  std::unique_ptr<Session> session(new Session(fs, clock, options));
  LCCFS_CHECK(session->start(about_to_mount));
  return session;
}

Result<> Session::hold_subdirectory() {
  LCCFS_TRY(serving_.root, find_directory(serving_.fs, options_.subdirectory));
  if (serving_.root == root_ino) return {};
  LCCFS_TRY(subdirectory_, serving_.fs.open_directory(serving_.root));
  return {};
}

Result<> Session::start(const AboutToMount& about_to_mount) {
  LCCFS_CHECK(hold_subdirectory());
  if (about_to_mount) LCCFS_CHECK(about_to_mount());
  std::string program = "lccfs-fuse", flag = "-o", options = mount_options(options_);
  std::vector<char*> words = {program.data(), flag.data(), options.data()};
  fuse_args arguments = FUSE_ARGS_INIT(static_cast<int>(words.size()), words.data());
  const fuse_lowlevel_ops table = operations();
  fuse_set_log_func(keep_libfuse_line);
  session_ = fuse_session_new(&arguments, &table, sizeof table, &serving_);
  const bool mounted = session_ != nullptr && fuse_session_mount(session_, options_.mountpoint.c_str()) == 0;
  fuse_opt_free_args(&arguments);
  fuse_set_log_func(log_libfuse_line);
  if (mounted) serving_.session_fd = fuse_session_fd(session_);
  serving_.killed_callers.begin(
      serving_.session_fd, [this](KilledCallers::Work work) { serving_.pool.post(std::move(work)); },
      [this](std::uint64_t ticket) { serving_.fs.interrupt_lock(ticket); });
  if (!mounted) {
    const std::string why = last_libfuse_line.empty() ? "fusermount3 refuses it" : last_libfuse_line;
    return failure(ErrorCode::io, "cannot mount on " + options_.mountpoint + ": " + why);
  }
  if (!use_kernel_channel(session_))
    log::warning("no shared mappings of O_DIRECT descriptors, and slow small writes: libfuse takes no channel of ours");
  const auto entry = mounted_at(options_.mountpoint);
  if (entry) device_ = entry->device;
  device_number_ = number_of_device(device_);
  if (entry && entry->type == "fuse.lccfs") {
    abort_file_ = open_abort_file(device_);
    if (options_.guard) options_.guard->watch(abort_file_);
  }
  notifier_.emplace(session_, serving_.handshake, serving_.root);
  serving_.fs.set_kernel_cache(&*notifier_);
  return {};
}

// Also after an error: end() may be waiting for the kernel, which waits for us.
Result<> Session::serve(const std::function<void()>& ready) {
  Result<> served = serve_all(ready);
  close();
  return served;
}

Result<> Session::serve_all(const std::function<void()>& ready) {
  LCCFS_TRY(const bool is_mounted, negotiate());
  if (!is_mounted) return {};
  const std::jthread ticks = run_periodically(
      serving_.clock, [] { return tick_period; },
      [this](const std::stop_token&) {
        serving_.metrics->tick(serving_.fs);
        serving_.fs.tick();
        if (!options_.end_when_fenced || !serving_.fs.fenced()) return true;
        log::warning("the mount on " + options_.mountpoint + " ends, as end_when_fenced asks for");
        options_.about_to_end_as_fenced();
        end();
        return false;
      });
  ready();
  auto served = receive_until_the_end();
  close();  // while it ticks: what is in flight may hang, and other files are stored meanwhile
  return served;
}

Result<> Session::receive_until_the_end() {
  const std::jthread looks = run_each_second(serving_.clock, [this] {
    serving_.receiver.look();
    serving_.killed_callers.look();
  });
  Result<> served;
  serving_.receiver.run([this, &served] {
    const auto more = serve_one();
    if (!more) served = std::unexpected(more.error());
    return more.value_or(false);
  });
  return served;
}

/// The kernel's first request settles what the two speak; what is mounted answers nobody before. false: end() came
/// first.
Result<bool> Session::negotiate() {
  LCCFS_TRY(const bool more, serve_one());
  if (!more && end_wanted_) return false;
  if (!more) return failure(ErrorCode::io, options_.mountpoint + " was unmounted before it was ready");
  const auto readahead = set_readahead(device_, options_.readahead_bytes);
  if (!readahead) log::warning(readahead.error().context);
  // From here on the serving thread must wake up for end() as well.
  const int fd = fuse_session_fd(session_);
  if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
    return failure(ErrorCode::io, std::string("/dev/fuse: ") + std::strerror(errno));
  return true;
}

Result<bool> Session::serve_one() {
  if (past_drain_limit()) return false;
  auto& request = serving_.requests.current();
  const int received = fuse_session_receive_buf(session_, &request);
  if (received > 0) {
    fuse_session_process_buf(session_, &request);
    return true;
  }
  if (received == 0) return false;  // unmounted, or its connection is cut
  if (received == -EINTR) return true;
  if (received == -EAGAIN) return wait_for_requests();
  return failure(ErrorCode::io, std::string("/dev/fuse: ") + std::strerror(-received));
}

bool Session::wait_for_requests() {
  if (ending_ && serving_.in_flight == 0) return false;
  pollfd fds[] = {{.fd = fuse_session_fd(session_), .events = POLLIN, .revents = 0},
                  {.fd = wake_fd_, .events = POLLIN, .revents = 0}};
  if (ending_)
    poll(fds, 1, drain_step_ms);
  else
    poll(fds, 2, -1);
  return true;
}

bool Session::past_drain_limit() const { return ending_ && serving_.clock.elapsed() > drain_deadline_; }

bool Session::is_mounted() const {
  if (is_gone_) return false;
  const auto entry = mounted_at(options_.mountpoint);
  return entry && entry->device == device_ && number_of_device(device_) == device_number_;
}

// What programs have changed in mapped pages is asked for while requests are still served. An unmount writes it back only
// if it is the last: a container may have a mount of its own of the same. (Not root: it is unmounted at the end.)
void Session::begin_to_end() {
  serving_.fs.write_back_pages(write_back_limit);
  if (is_mounted() && umount2(options_.mountpoint.c_str(), UMOUNT_NOFOLLOW) != 0 && errno == EBUSY)
    log::warning(options_.mountpoint + " is in use; the programs that use it lose it now");
  drain_deadline_ = serving_.clock.elapsed() + options_.drain_limit;
  ending_ = true;
  serving_.fs.interrupt_all_locks();
  eventfd_write(wake_fd_, 1);
}

void Session::end() {
  end_wanted_ = true;
  std::call_once(ends_, [this] { begin_to_end(); });
}

void Session::unmount_by_force() {
  if (is_mounted()) umount2(options_.mountpoint.c_str(), MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW);
  // Where that may not be, or another mount of the same is left.
  if (abort_file_ && write(abort_file_.get(), "1", 1) != 1)
    log::warning(options_.mountpoint + ": its connection is not cut: " + std::strerror(errno));
  if (is_mounted()) unmount_at_once(options_.mountpoint);  // not root: libfuse would not, without a connection
  is_gone_ = true;
}

// The connection is cut before the file system is waited for: some of what is in flight may itself wait for the kernel
// (invalidations do, for pages that are being read).
void Session::close() {
  if (std::exchange(closed_, true)) return;
  unmount_by_force();
  serving_.fs.interrupt_all_locks();
  while (serving_.in_flight != 0) serving_.clock.sleep_for(std::chrono::milliseconds(drain_step_ms));
  serving_.fs.set_kernel_cache(nullptr);
  if (options_.guard) options_.guard->dismiss();
}

}  // namespace lccfs::fuse
