// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/process_rights.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <string>

#include "support/catch.h"

using namespace lccfs;

namespace {

void write_file(const char* path, const std::string& text) { std::ofstream(path) << text; }

/// A process that is root of a user namespace of its own, as after `unshare -r`.
class RootOfItsOwn {
 public:
  RootOfItsOwn() {
    std::array<int, 2> ready{};
    REQUIRE(::pipe(ready.data()) == 0);
    const auto user = std::to_string(::getuid()), group = std::to_string(::getgid());
    process = ::fork();
    if (process == 0) {
      const char is_there = ::unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';
      write_file("/proc/self/setgroups", "deny");
      write_file("/proc/self/uid_map", "0 " + user + " 1");
      write_file("/proc/self/gid_map", "0 " + group + " 1");
      if (::write(ready[1], &is_there, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char is_there = 'n';
    REQUIRE(::read(ready[0], &is_there, 1) == 1);
    may_be_one = is_there == 'y';
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~RootOfItsOwn() {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }
  RootOfItsOwn(const RootOfItsOwn&) = delete;
  RootOfItsOwn& operator=(const RootOfItsOwn&) = delete;

  pid_t process = 0;
  bool may_be_one = false;  // this host lets us make one
};

}  // namespace

TEST_CASE("who is root of a user namespace of his own is capable of what is his, and of nothing that is the host's") {
  const RootOfItsOwn root;
  if (!root.may_be_one) return;
  CHECK(is_capable(root.process, CAP_SYS_ADMIN, ::getuid(), ::getgid()));
  CHECK_FALSE(is_capable(root.process, CAP_SYS_ADMIN, ::getuid() + 1, ::getgid()));
  CHECK(is_capable_here(root.process, CAP_SYS_ADMIN) == false);
}

TEST_CASE("what a process may do here is not known where /proc does not show it") {
  CHECK(is_capable_here(::getpid(), CAP_SYS_ADMIN) == is_capable(::getpid(), CAP_SYS_ADMIN, 0, 0));
  CHECK_FALSE(is_capable_here(0, CAP_SYS_ADMIN));
}
