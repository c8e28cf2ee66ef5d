// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "base/log.h"
#include "base/text.h"

namespace lccfs {
namespace {

Program running;

/// As many as systemd lets a service have by default.
constexpr rlim_t most_open_files = 524288;

/// Standard output is opened such that writing to it fails: output that nothing can read must not count as success.
bool open_standard_descriptors() {
  for (const int wanted : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(wanted, F_GETFD) >= 0) continue;
    if (open("/dev/null", wanted == STDOUT_FILENO ? O_RDONLY : O_RDWR) != wanted) return false;
  }
  return true;
}

/// The soft limit is low for programs that call select(): none of ours does. With a connection to each OSD it is soon
/// too low, and librados then waits for connections that it cannot make. What may not be raised stays.
void raise_limit_of_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= most_open_files) return;
  limit.rlim_cur = std::min(limit.rlim_max, most_open_files);
  setrlimit(RLIMIT_NOFILE, &limit);
}

bool flush_output() {
  errno = 0;
  std::cout.flush();
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
}

}  // namespace

int run_program(int argc, char** argv, const Program& program, int (*run)(const std::vector<std::string>&)) {
  if (!open_standard_descriptors()) return program.output_lost;
  raise_limit_of_open_files();
  running = program;
  const int result = run({argv + std::min(argc, 1), argv + argc});
  log::flush();
  if (flush_output()) return result;
  const std::string why = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
  return result | complain(program, "cannot write to standard output" + why, program.output_lost);
}

void print_error(std::string_view program, std::string_view line) {
  const std::string text = std::string(program) + ": " + printable(line) + "\n";
  std::fputs(text.c_str(), stderr);
}

int complain(const Program& program, std::string_view line, int status) {
  log::flush();  // what was logged before stands before it
  print_error(program.name, line);
  return status;
}

void end_by_damage(std::initializer_list<const char*> parts) {
  std::array<char, 4608> line;  // a path and more
  std::size_t size = 0;
  const auto add = [&line, &size](const char* part) {
    for (; *part != '\0' && size + 1 < line.size(); ++part) line[size++] = *part;
  };
  add(running.name);
  add(": ");
  for (const char* part : parts) add(part);
  line[size++] = '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), size);
  log::write_in_a_handler({line.data(), size});
  ::_exit(running.failed);
}

}  // namespace lccfs
