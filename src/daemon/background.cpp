// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/background.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

namespace lccfs::daemon {

namespace {

volatile pid_t waited_for = 0;

void pass_on(int signal) { kill(waited_for, signal); }

/// Beside the three that all have: what a caller holds open, or has locked, is not to stay so for as long as we run.
std::vector<int> open_descriptors(int but) {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    if (fd > STDERR_FILENO && fd != but) found.push_back(fd);
  }
  // That of the list itself is among them, and closed.
  std::erase_if(found, [](int fd) { return fcntl(fd, F_GETFD) < 0; });
  return found;
}

}  // namespace

int Background::status_of(int child) const {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return program_.system_error;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  if (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT) {
    std::fprintf(stderr, "%s: interrupted\n", program_.name);
    return program_.interrupted;
  }
  std::fprintf(stderr, "%s: ended by signal %d before it was ready\n", program_.name, WTERMSIG(status));
  return program_.internal_error;
}

int Background::wait_until_ready(int child_fd, int child) const {
  std::signal(SIGINT, SIG_IGN);  // the child gets it too, and its status tells
  char byte = 0;
  return read(child_fd, &byte, 1) == 1 ? EXIT_SUCCESS : status_of(child);
}

int Background::cannot_start(int error) const {
  return complain(program_, std::string("cannot start a process: ") + std::strerror(error), program_.system_error);
}

std::optional<int> Background::fork() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return cannot_start(errno);
  // A SIGTERM comes to one process alone, mostly the parent. It waits until that can pass it on. A SIGHUP is for a log.
  sigset_t early, before;
  sigemptyset(&early);
  for (const int number : {SIGTERM, SIGHUP}) sigaddset(&early, number);
  pthread_sigmask(SIG_BLOCK, &early, &before);
  const pid_t child = ::fork();
  const int error = errno;
  if (child > 0) {
    waited_for = child;
    std::signal(SIGTERM, pass_on);
    std::signal(SIGHUP, SIG_IGN);
  }
  if (child == 0) sigaddset(&before, SIGHUP);  // it waits for EndSignals
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return cannot_start(error);
  if (child > 0) {
    ::close(fds[1]);
    return wait_until_ready(fds[0], child);
  }
  ::close(fds[0]);
  parent_fd_ = fds[1];
  inherited_ = open_descriptors(parent_fd_);
  return std::nullopt;
}

void Background::ready() {
  if (parent_fd_ < 0) {
    sd_notify(0, "READY=1");
    return;
  }
  setsid();
  const bool moved = chdir("/") == 0;  // so that no other file system is kept busy
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  close(null);
  for (const int fd : inherited_) close(fd);  // not before: the command line may have named one, as /dev/fd/N
  if (moved) [[maybe_unused]]
    const ssize_t written = write(parent_fd_, "r", 1);
  close(parent_fd_);
}

}  // namespace lccfs::daemon
