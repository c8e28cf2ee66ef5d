// SPDX-License-Identifier: LGPL-2.1-or-later
// How a connection to the kernel ends, with a server of three requests. Silent where FUSE cannot be used.
#include "fuse/kernel_channel.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "fuse/connection_guard.h"
#include "fuse/mount_table.h"
#include "support/can_mount.h"
#include "support/catch.h"

namespace lccfs {
namespace {

using test::can_mount;

/// The answer to one request: what it takes to open and close the root directory, and nothing else.
std::string answer_to(const fuse_in_header& request) {
  fuse_out_header header = {};
  header.unique = request.unique;
  std::string body;
  if (request.opcode == FUSE_INIT) {
    fuse_init_out init = {};
    init.major = FUSE_KERNEL_VERSION;
    init.minor = 31;
    init.flags = FUSE_ABORT_ERROR;
    init.max_background = 1000;
    init.max_write = 4096;
    body.assign(reinterpret_cast<const char*>(&init), sizeof init);
  } else if (request.opcode == FUSE_OPENDIR) {
    body.assign(sizeof(fuse_open_out), '\0');
  } else if (request.opcode != FUSE_RELEASEDIR) {
    header.error = -ENOSYS;
  }
  header.len = static_cast<std::uint32_t>(sizeof header + body.size());
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body;
}

/// A connection that is served for as long as it lives; its directory is mounted until somebody ends that.
class Connection {
 public:
  explicit Connection(std::string directory) : directory_(std::move(directory)) {
    const std::string options = "fd=" + std::to_string(device_.get()) + ",rootmode=40000,user_id=0,group_id=0";
    REQUIRE(::mount("test", directory_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~Connection() {
    ::umount2(directory_.c_str(), MNT_DETACH);
    if (thread_.joinable()) thread_.join();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// The error of the read that was the last.
  int error_at_the_end() {
    thread_.join();
    return error_;
  }

 private:
  void serve() {
    std::vector<char> request(1 << 16);
    for (;;) {
      const ssize_t got = fuse::read_from_kernel(device_.get(), request.data(), request.size());
      if (got < 0 && (errno == ENOENT || errno == EINTR)) continue;  // that request is no more
      if (got < 0) return static_cast<void>(error_ = errno);
      fuse_in_header header = {};
      std::memcpy(&header, request.data(), sizeof header);
      const auto answer = answer_to(header);
      static_cast<void>(!::write(device_.get(), answer.data(), answer.size()));
    }
  }

  const std::string directory_;
  const Descriptor device_{open("/dev/fuse", O_RDWR | O_CLOEXEC)};
  int error_ = 0;
  std::thread thread_;
};

class Directory {
 public:
  Directory() { REQUIRE(mkdtemp(path_.data()) != nullptr); }
  ~Directory() { std::filesystem::remove(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "lccfs-channel-XXXXXX").string();
};

// Of 200 such unmounts about 40 meet a request that is just being read.
TEST_CASE("an unmount that meets requests on their way is told apart from an abort") {
  if (!can_mount()) return;
  const Directory directory;
  for (int round = 0; round < 200; ++round) {
    Connection connection(directory.path());
    std::array<Descriptor, 60> opened;
    for (auto& each : opened) each = Descriptor(open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (auto& each : opened) each = Descriptor();
    REQUIRE(::umount2(directory.path().c_str(), 0) == 0);
    REQUIRE(connection.error_at_the_end() == ENODEV);
  }
}

TEST_CASE("an abort of the connection is told as one") {
  if (!can_mount()) return;
  const Directory directory;
  Connection connection(directory.path());
  REQUIRE(Descriptor(open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  const auto mounted = fuse::mounted_at(directory.path());
  REQUIRE(mounted);
  const auto abort_file = fuse::open_abort_file(mounted->device);
  REQUIRE(::write(abort_file.get(), "1", 1) == 1);
  CHECK(connection.error_at_the_end() == ECONNABORTED);
}

}  // namespace
}  // namespace lccfs
