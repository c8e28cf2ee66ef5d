// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/connection_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/log.h"

namespace lccfs::fuse {
namespace {

/// Queued: the kernel's does not get lost behind somebody else's.
int death() { return SIGRTMIN; }

// ---- one descriptor through a socket

struct Passing {
  char byte = 0;
  iovec bytes{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  Passing() {
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
  }
};

bool send_descriptor(int socket, int fd) {
  Passing passing;
  cmsghdr* header = CMSG_FIRSTHDR(&passing.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return sendmsg(socket, &passing.message, MSG_NOSIGNAL) == 1;
}

/// -1: the other side is closed.
int received_descriptor(int socket) {
  Passing passing;
  int fd = -1;
  const bool came = recvmsg(socket, &passing.message, MSG_CMSG_CLOEXEC) == 1;
  const cmsghdr* header = came ? CMSG_FIRSTHDR(&passing.message) : nullptr;
  if (header != nullptr) std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

// ---- the process

/// Of what it has inherited it keeps nothing but the socket: a file that it kept open would keep others waiting.
void leave_everything_but(int socket) {
  const int null = open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  close_range(STDERR_FILENO + 1, static_cast<unsigned>(socket) - 1, 0);
  close_range(static_cast<unsigned>(socket) + 1, ~0U, 0);
  setsid();
  if (chdir("/") != 0) _exit(EXIT_FAILURE);
}

/// A terminal's or a service manager's signal to all is not meant for it: it ends by itself.
int heed_death_alone() {
  sigset_t signals;
  sigfillset(&signals);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  prctl(PR_SET_NAME, "lccfs-guard");
  prctl(PR_SET_PDEATHSIG, death());
  sigemptyset(&signals);
  sigaddset(&signals, death());
  return signalfd(-1, &signals, 0);
}

/// The kernel sends it in the name of the one that has died. That one's process may still have threads, and be the
/// parent.
bool tells_death_of(pid_t parent, int deaths) {
  signalfd_siginfo info{};
  return read(deaths, &info, sizeof info) == sizeof info && static_cast<pid_t>(info.ssi_pid) == parent;
}

/// Until the other side of the socket is closed, or the thread that has begun this ends.
[[noreturn]] void guard(int socket, pid_t parent) {
  const int deaths = heed_death_alone();
  if (deaths < 0 || getppid() != parent) _exit(EXIT_FAILURE);
  int abort_file = -1;
  for (;;) {
    pollfd fds[] = {{.fd = socket, .events = POLLIN, .revents = 0}, {.fd = deaths, .events = POLLIN, .revents = 0}};
    poll(fds, 2, -1);
    if (fds[1].revents != 0 && tells_death_of(parent, deaths)) {
      const bool aborted = write(abort_file, "1", 1) == 1;
      _exit(aborted ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    if (fds[0].revents == 0) continue;
    abort_file = received_descriptor(socket);
    if (abort_file < 0) _exit(EXIT_SUCCESS);
  }
}

void warn(const std::string& why) {
  log::warning("if this client is killed, programs may hang until umount -f: " + why + ": " + std::strerror(errno));
}

}  // namespace

Descriptor open_abort_file(const std::string& device) {
  const auto file = device.substr(device.find(':') + 1) + "/abort";
  Descriptor found(open(("/sys/fs/fuse/connections/" + file).c_str(), O_WRONLY | O_CLOEXEC));
  if (found) return found;
  // Hosts have fusectl mounted there; containers often not.
  const Descriptor context(fsopen("fusectl", FSOPEN_CLOEXEC));
  if (!context || fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return found;
  const Descriptor connections(fsmount(context.get(), FSMOUNT_CLOEXEC, 0));
  return Descriptor(openat(connections.get(), file.c_str(), O_WRONLY | O_CLOEXEC));
}

std::unique_ptr<ConnectionGuard> ConnectionGuard::start() {
  const pid_t self = getpid();
  int sockets[2] = {-1, -1};
  const bool paired = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0;
  const pid_t child = paired ? fork() : -1;
  if (child == 0) {
    const int socket = fcntl(sockets[0], F_DUPFD, STDERR_FILENO + 1);
    if (socket < 0) _exit(EXIT_FAILURE);
    leave_everything_but(socket);
    guard(socket, self);
  }
  if (child < 0) warn("no process to guard the connection");
  const Descriptor theirs(sockets[0]);
  Descriptor ours(sockets[1]);
  return child < 0 ? nullptr : std::unique_ptr<ConnectionGuard>(new ConnectionGuard(std::move(ours), child));
}

ConnectionGuard::~ConnectionGuard() { dismiss(); }

void ConnectionGuard::watch(const Descriptor& abort_file) {
  if (!abort_file) return warn("cannot open the file of fusectl that aborts its connection");
  if (!send_descriptor(socket_.get(), abort_file.get())) warn("the process that guards the connection is gone");
}

/// By force: one that was stopped would keep us waiting, with bytes to be stored.
void ConnectionGuard::dismiss() {
  if (!socket_) return;
  socket_ = Descriptor();
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

}  // namespace lccfs::fuse
