// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <iostream>

#include "support/catch.h"

using namespace lccfs;

namespace {

constexpr int output_lost = 8;

/// The status that a child process exits with: `prepare` there, then a program of that `run`.
int status_of(const std::function<void()>& prepare, int (*run)(const std::vector<std::string>&)) {
  const pid_t child = fork();
  if (child == 0) {
    prepare();
    std::string name = "program";
    char* words[] = {name.data(), nullptr};
    _exit(run_program(1, words, {.name = "program", .output_lost = output_lost}, run));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void output_to(const char* path) {
  const int file = open(path, O_WRONLY);
  dup2(file, STDOUT_FILENO);
  close(file);
}

int next_descriptor(const std::vector<std::string>&) {
  const int file = open("/dev/null", O_RDONLY);
  return file > STDERR_FILENO ? 0 : 1;
}

int open_files_are_as_many_as_may_be(const std::vector<std::string>&) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur == limit.rlim_max ? 0 : 1;
}

int print(const std::vector<std::string>&) {
  std::cout << "text\n";
  return 0;
}

int print_and_fail(const std::vector<std::string>&) {
  std::puts("text");
  return 4;
}

int print_nothing(const std::vector<std::string>& words) { return static_cast<int>(words.size()); }

}  // namespace

TEST_CASE("a program that is started without 0, 1 or 2 opens no file of its own as one of them") {
  for (int closed = 1; closed < 8; ++closed) {
    INFO(closed);
    const auto close_some = [closed] {
      for (int descriptor = 0; descriptor < 3; ++descriptor)
        if ((closed >> descriptor & 1) != 0) close(descriptor);
    };
    CHECK(status_of(close_some, next_descriptor) == 0);
  }
}

TEST_CASE("a program may open as many files as its hard limit says, whatever the soft one is") {
  const auto few = [] {
    const rlimit limit{64, 4096};
    setrlimit(RLIMIT_NOFILE, &limit);
  };
  CHECK(status_of(few, open_files_are_as_many_as_may_be) == 0);
}

TEST_CASE("output that could not be written is no success") {
  const auto no_errors_shown = [] { close(STDERR_FILENO); };
  CHECK(status_of([] { output_to("/dev/null"); }, print) == 0);
  CHECK(status_of(
            [&] {
              no_errors_shown();
              output_to("/dev/full");
            },
            print) == output_lost);
  CHECK(status_of(
            [&] {
              no_errors_shown();
              output_to("/dev/full");
            },
            print_and_fail) == (4 | output_lost));
  CHECK(status_of(
            [&] {
              no_errors_shown();
              close(STDOUT_FILENO);
            },
            print) == output_lost);
}

TEST_CASE("a program that prints nothing needs no output") {
  CHECK(status_of([] { output_to("/dev/full"); }, print_nothing) == 0);
  CHECK(status_of([] { close(STDOUT_FILENO); }, print_nothing) == 0);
}
