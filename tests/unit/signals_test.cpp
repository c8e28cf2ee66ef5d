// SPDX-License-Identifier: LGPL-2.1-or-later
// What a signal does to a program that goes to the background, from its first moment on. Each case in a process of its
// own, whose status is looked at.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <future>

#include "daemon/background.h"
#include "daemon/end_signals.h"
#include "support/catch.h"

namespace lccfs {
namespace {

using daemon::Background;
using daemon::EndSignals;

constexpr int ended_cleanly = 42;
constexpr Program program{.name = "signals_test", .internal_error = 4, .interrupted = 8};

/// Who reads it waits until somebody writes, or all who could are gone.
class Pipe {
 public:
  Pipe() { REQUIRE(pipe(fds_.data()) == 0); }
  ~Pipe() {
    for (const int fd : fds_) close(fd);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool tell() const { return write(fds_[1], "x", 1) == 1; }
  bool wait() const {
    char byte = 0;
    return read(fds_[0], &byte, 1) == 1;
  }

 private:
  std::array<int, 2> fds_{};
};

pid_t start(const std::function<int()>& work) {
  const pid_t process = fork();
  if (process != 0) return process;
  for (const int number : {SIGTERM, SIGINT}) std::signal(number, SIG_DFL);  // not Catch's, which reports a failure
  _exit(work());
}

int exit_status(pid_t process) {
  int status = 0;
  REQUIRE(waitpid(process, &status, 0) == process);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST_CASE("a signal ends the process at once while nothing is held") {
  const auto [number, hangup] = GENERATE(table<int, EndSignals::Hangup>({{SIGTERM, EndSignals::Hangup::reopens_log},
                                                                         {SIGINT, EndSignals::Hangup::reopens_log},
                                                                         {SIGHUP, EndSignals::Hangup::ends}}));
  CHECK(exit_status(start([number, hangup] {
          const EndSignals signals(program, hangup);
          kill(getpid(), number);
          for (;;) pause();
          return 0;
        })) == program.interrupted);
}

TEST_CASE("a SIGHUP for the log ends no program that is still starting, nor the command that waits for it") {
  const Pipe begun;
  const pid_t command = start([&] {
    Background background(program);
    if (const auto status = background.fork()) return *status;
    kill(getpid(), SIGHUP);
    const EndSignals signals(program, EndSignals::Hangup::reopens_log);
    kill(getppid(), SIGHUP);
    kill(getpid(), SIGHUP);
    begun.tell();
    for (;;) pause();
  });
  REQUIRE(begun.wait());
  kill(command, SIGTERM);  // passed on, by the command
  CHECK(exit_status(command) == program.interrupted);
}

TEST_CASE("a signal that comes while something is held waits for the handler") {
  CHECK(exit_status(start([] {
          std::promise<void> called;
          EndSignals signals(program, EndSignals::Hangup::reopens_log);
          signals.hold();
          kill(getpid(), SIGHUP);  // is none that ends it
          kill(getpid(), SIGTERM);
          signals.handle_with([&called] { called.set_value(); });
          called.get_future().wait();
          return ended_cleanly;
        })) == ended_cleanly);
}

TEST_CASE("a SIGTERM to a command that waits for its program in the background ends that program, too") {
  const bool takes_signals = GENERATE(false, true);
  const Pipe begun;
  const pid_t command = start([&] {
    Background background(program);
    if (const auto status = background.fork()) return *status;
    std::promise<void> called;
    EndSignals signals(program, EndSignals::Hangup::reopens_log);
    if (!takes_signals) {
      begun.tell();
      for (;;) pause();
    }
    signals.hold();
    signals.handle_with([&called] { called.set_value(); });
    begun.tell();
    called.get_future().wait();
    return ended_cleanly;
  });
  REQUIRE(begun.wait());
  kill(command, SIGTERM);
  CHECK(exit_status(command) == (takes_signals ? ended_cleanly : program.interrupted));
}

TEST_CASE("a program in the background that a signal ends before it takes signals counts as interrupted") {
  CHECK(exit_status(start([] {
          Background background(program);
          if (const auto status = background.fork()) return *status;
          kill(getpid(), SIGTERM);
          return 0;
        })) == program.interrupted);
}

}  // namespace
}  // namespace lccfs
