// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/connection_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/log.h"

namespace lccfs::fuse {
namespace {

constexpr const char* connections_folder = "/sys/fs/fuse/connections";
constexpr int death = SIGUSR1;

bool write_to_abort(const std::string& device) {
  const auto minor = device.substr(device.find(':') + 1);
  const Descriptor file(open((std::string(connections_folder) + "/" + minor + "/abort").c_str(), O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), "1", 1) == 1;
}

/// Hosts have fusectl mounted; containers often not.
void abort_connection(const std::string& device) {
  if (write_to_abort(device) || unshare(CLONE_NEWNS) != 0) return;
  mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (mount("none", connections_folder, "fusectl", 0, nullptr) == 0) write_to_abort(device);
}

/// Of what it has inherited it keeps nothing but the pipe: a file that it kept open would keep others waiting.
void leave_everything_but(int pipe) {
  const int null = open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  close_range(STDERR_FILENO + 1, static_cast<unsigned>(pipe) - 1, 0);
  close_range(static_cast<unsigned>(pipe) + 1, ~0U, 0);
  setsid();
  if (chdir("/") != 0) _exit(EXIT_FAILURE);
}

/// Killing by name, and a terminal's or a service manager's signal to all, are not meant for it: it ends by itself.
int heed_death_alone() {
  sigset_t signals;
  sigfillset(&signals);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  prctl(PR_SET_NAME, "lccfs-guard");
  prctl(PR_SET_PDEATHSIG, death);
  sigemptyset(&signals);
  sigaddset(&signals, death);
  return signalfd(-1, &signals, 0);
}

/// Until the pipe is closed, or the thread that has begun this ends.
[[noreturn]] void guard(int pipe, pid_t parent) {
  const int deaths = heed_death_alone();
  if (getppid() != parent) _exit(EXIT_SUCCESS);
  std::string device;
  for (pollfd fds[] = {{.fd = pipe, .events = POLLIN, .revents = 0}, {.fd = deaths, .events = POLLIN, .revents = 0}};
       ;) {
    if (poll(fds, 2, -1) < 0) continue;
    if (fds[1].revents != 0) {
      if (!device.empty()) abort_connection(device);
      _exit(EXIT_SUCCESS);
    }
    char text[32];
    const ssize_t size = read(pipe, text, sizeof text);
    if (size <= 0) _exit(EXIT_SUCCESS);
    device.assign(text, static_cast<std::size_t>(size));
  }
}

}  // namespace

std::unique_ptr<ConnectionGuard> ConnectionGuard::start() {
  const pid_t self = getpid();
  int fds[2] = {-1, -1};
  const bool piped = pipe2(fds, O_CLOEXEC) == 0;
  const pid_t child = piped ? fork() : -1;
  if (child == 0) {
    const int pipe = fcntl(fds[0], F_DUPFD, STDERR_FILENO + 1);
    leave_everything_but(pipe);
    guard(pipe, self);
  }
  const int why = errno;
  const Descriptor theirs(fds[0]);
  if (child > 0) return std::unique_ptr<ConnectionGuard>(new ConnectionGuard(fds[1], child));
  log::warning(std::string("if this client is killed, umount -f may be needed: no process to guard the connection: ") +
               std::strerror(why));
  if (piped) close(fds[1]);
  return nullptr;
}

ConnectionGuard::~ConnectionGuard() { dismiss(); }

void ConnectionGuard::watch(const std::string& device) {
  if (write(pipe_.get(), device.data(), device.size()) != static_cast<ssize_t>(device.size())) dismiss();
}

void ConnectionGuard::dismiss() {
  if (!pipe_) return;
  pipe_ = Descriptor();
  waitpid(child_, nullptr, 0);
}

}  // namespace lccfs::fuse
