// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "conformance/victim.h"

namespace lccfs::conformance {
namespace {

/// Talks to conformance_victim.cpp: it prints its identity's length and bytes when it is ready, and ends when its
/// standard input does.
class VictimProcess : public Victim {
 public:
  explicit VictimProcess(const std::string& directory) {
    std::array<int, 2> input{}, output{};
    REQUIRE(pipe2(input.data(), O_CLOEXEC) == 0);
    REQUIRE(pipe2(output.data(), O_CLOEXEC) == 0);
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "conformance_victim";
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      dup2(input[0], STDIN_FILENO);
      dup2(output[1], STDOUT_FILENO);
      execl(program.c_str(), program.c_str(), directory.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    close(input[0]);
    close(output[1]);
    stop_fd_ = input[1];
    read_identity(output[0]);
    close(output[0]);
  }
  ~VictimProcess() override { VictimProcess::end(); }

  Bytes identity() override { return identity_; }
  void wait_until_over() override {
    int status = 0;
    REQUIRE(waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    CHECK(WIFSIGNALED(status));
  }
  void end() override {
    if (stop_fd_ >= 0) close(stop_fd_);
    stop_fd_ = -1;
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  void read_identity(int fd) {
    std::uint32_t length = 0;
    read_all(fd, reinterpret_cast<char*>(&length), sizeof length);
    identity_.resize(length);
    read_all(fd, identity_.data(), identity_.size());
  }
  static void read_all(int fd, char* target, std::size_t size) {
    while (size != 0) {
      const ssize_t count = ::read(fd, target, size);
      REQUIRE(count > 0);
      target += count;
      size -= static_cast<std::size_t>(count);
    }
  }

  pid_t pid_ = -1;
  int stop_fd_ = -1;
  Bytes identity_;
};

}  // namespace

std::unique_ptr<Victim> start_victim_process(const std::string& directory) {
  return std::make_unique<VictimProcess>(directory);
}

}  // namespace lccfs::conformance
