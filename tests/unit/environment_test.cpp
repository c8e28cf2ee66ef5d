// SPDX-License-Identifier: LGPL-2.1-or-later
// Opening an LMDB environment: whoever is killed meanwhile, the next one starts at the last commit; and full disks.
#include "store/local/environment.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.h"
#include "support/temporary_folder.h"

namespace lccfs::local {
namespace {

int error_of_next_reserve = 0;
unsigned reserves_asked_for = 0;

class Folder : public test::TemporaryFolder {
 public:
  std::string lock_file() const { return path() + "/lock.mdb"; }
};

/// A process that has done its work (which answers whether it went well), and then stands still until it is killed.
class Child {
 public:
  explicit Child(const std::function<bool()>& work) {
    std::array<int, 2> done{};
    REQUIRE(pipe2(done.data(), O_CLOEXEC) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || !work() || write(done[1], "!", 1) != 1) _exit(1);
      for (;;) pause();
    }
    close(done[1]);
    char byte = 0;
    const bool has_worked = read(done[0], &byte, 1) == 1;
    close(done[0]);
    REQUIRE(has_worked);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void end() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

void commit(Environment& environment, const std::string& key) {
  const auto write = environment.begin_write();
  REQUIRE(write);
  REQUIRE((*write)->put(Table::objects, key, "value"));
  REQUIRE((*write)->commit());
}

bool has(Environment& environment, const std::string& key) {
  const auto read = environment.begin_read();
  REQUIRE(read);
  const auto found = (*read)->get(Table::objects, key);
  REQUIRE(found);
  return found->has_value();
}

std::uint64_t last_commit_of(Environment& environment) {
  const auto read = environment.begin_read();
  REQUIRE(read);
  return mdb_txn_id((*read)->raw());
}

/// The number of the last commit, which put in the key `last`.
std::uint64_t fill(const std::string& directory, bool odd) {
  const auto environment = Environment::open(directory, {.create = true});
  REQUIRE(environment);
  do commit(**environment, "earlier");
  while (last_commit_of(**environment) < 20 || last_commit_of(**environment) % 2 == (odd ? 1 : 0));
  commit(**environment, "last");
  const auto last = last_commit_of(**environment);
  CHECK(last % 2 == (odd ? 1 : 0));
  return last;
}

/// As LMDB holds its lock file while it opens it (F_WRLCK), and from then on (F_RDLCK).
bool lock_first_byte(int file, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_len = 1;
  return fcntl(file, F_SETLK, &lock) == 0;
}

/// Puts another number there where LMDB keeps that of the last commit.
bool renumber(int file, std::uint64_t last, std::uint64_t number) {
  std::array<std::uint64_t, 32> words{};
  if (pread(file, words.data(), sizeof words, 0) != sizeof words) return false;
  const auto found = std::find(words.begin(), words.end(), last);
  if (found == words.end() || std::find(found + 1, words.end(), last) != words.end()) return false;
  return pwrite(file, &number, sizeof number, (found - words.begin()) * static_cast<off_t>(sizeof number)) ==
         sizeof number;
}

/// Somebody waits for a lock of that file.
bool is_waited_for(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return false;
  const std::string inode = ":" + std::to_string(status.st_ino) + " ";
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);)
    if (line.find("->") != std::string::npos && line.find(inode) != std::string::npos) return true;
  return false;
}

/// Opens it while the child lives, which ends once it is waited for.
Result<std::unique_ptr<Environment>> open_after(Child& child, const Folder& folder) {
  auto opened = std::async(std::launch::async, [&] { return Environment::open(folder.path(), {}); });
  bool waits = false;
  for (int looks = 0; looks < 10000 && !waits; ++looks) {
    waits = is_waited_for(folder.lock_file()) || is_waited_for(folder.path());
    if (!waits) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(waits);
  child.end();
  return opened.get();
}

void check_is_usable(Result<std::unique_ptr<Environment>> opened, const Folder& folder) {
  INFO((opened ? std::string() : opened.error().context));
  REQUIRE(opened);
  CHECK(has(**opened, "last"));
  commit(**opened, "next");
  opened->reset();
  opened = Environment::open(folder.path(), {});
  REQUIRE(opened);
  CHECK(has(**opened, "last"));
  CHECK(has(**opened, "next"));
}

TEST_CASE("Who has waited for an opener of an older program that was killed starts at the last commit") {
  const bool odd = GENERATE(true, false);
  const Folder folder;
  const auto last = fill(folder.path(), odd);
  Child opener([&] {
    const int file = ::open(folder.lock_file().c_str(), O_RDWR | O_CLOEXEC);
    return lock_first_byte(file, F_WRLCK) && renumber(file, last, 0);
  });
  check_is_usable(open_after(opener, folder), folder);
}

TEST_CASE("Who has waited for an opener that was killed before it had begun the lock file begins it") {
  const Folder folder;
  fill(folder.path(), true);
  Child opener([&] {
    const int directory = ::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int file = ::open(folder.lock_file().c_str(), O_RDWR | O_TRUNC | O_CLOEXEC);
    return flock(directory, LOCK_EX) == 0 && lock_first_byte(file, F_WRLCK) && ftruncate(file, 256 << 10) == 0;
  });
  check_is_usable(open_after(opener, folder), folder);
}

TEST_CASE("While others have an environment open at an earlier moment it is busy, and the last commit stays") {
  const Folder folder;
  const auto last = fill(folder.path(), true);
  Child other([&] {
    const int file = ::open(folder.lock_file().c_str(), O_RDWR | O_CLOEXEC);
    return lock_first_byte(file, F_RDLCK) && renumber(file, last, 0);
  });
  const auto opened = Environment::open(folder.path(), {});
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ErrorCode::busy);
  other.end();
  check_is_usable(Environment::open(folder.path(), {}), folder);
}

TEST_CASE("A writer that was killed before all others knew of its commit keeps nobody out") {
  const Folder folder;
  const auto last = fill(folder.path(), true);
  Child writer([&] {
    Environment* const environment = Environment::open(folder.path(), {})->release();
    environment->begin_write()->release();
    return renumber(::open(folder.lock_file().c_str(), O_RDWR | O_CLOEXEC), last, last - 1);
  });
  Child other([&] { return lock_first_byte(::open(folder.lock_file().c_str(), O_RDWR | O_CLOEXEC), F_RDLCK); });
  writer.end();
  check_is_usable(Environment::open(folder.path(), {}), folder);
}

// ---- readers with the number of the process

/// In a PID namespace of its own, where its number is 1. Answers once it has ended, which is without any clean-up.
bool in_first_process(const std::function<bool()>& work) {
  if (unshare(CLONE_NEWPID) != 0) return false;
  const pid_t first = fork();
  if (first == 0) _exit([&]() noexcept { return getpid() == 1 && work(); }() ? 0 : 1);
  int status = 1;
  return first > 0 && waitpid(first, &status, 0) == first && status == 0;
}

bool begin_endless_read(const Folder& folder) {
  const auto environment = Environment::open(folder.path(), {})->release();
  auto read = environment->begin_read();
  return read && read->release() != nullptr;
}

/// Their process numbers.
std::vector<int> readers_of(Environment& environment) {
  std::vector<int> readers;
  const auto add = [](const char* line, void* to) {
    if (const int number = std::atoi(line); number != 0) static_cast<std::vector<int>*>(to)->push_back(number);
    return 0;
  };
  const auto read = environment.begin_read();
  REQUIRE(read);
  mdb_reader_list(mdb_txn_env((*read)->raw()), add, &readers);
  return readers;
}

std::size_t last_page_of(Environment& environment) {
  MDB_envinfo info{};
  mdb_env_info(mdb_txn_env((*environment.begin_read())->raw()), &info);
  return info.me_last_pgno;
}

bool uses_freed_pages_again(Environment& environment) {
  for (int commits = 0; commits < 10; ++commits) commit(environment, "again");
  const auto before = last_page_of(environment);
  for (int commits = 0; commits < 10; ++commits) commit(environment, "again");
  return last_page_of(environment) == before;
}

TEST_CASE("A read of a process that was killed does not outlast the opening by one of the same number") {
  if (geteuid() != 0) return;  // a PID namespace needs it
  const Folder folder;
  fill(folder.path(), true);
  const Child other([&] { return Environment::open(folder.path(), {})->release() != nullptr; });
  const Child killed([&] { return in_first_process([&] { return begin_endless_read(folder); }); });
  const Child next([&] {
    return in_first_process([&] {
      const auto environment = Environment::open(folder.path(), {});
      return environment && readers_of(**environment) == std::vector{1} && uses_freed_pages_again(**environment);
    });
  });
}

TEST_CASE("A read of a living process stays where one of another PID namespace has its number, and is refused") {
  if (geteuid() != 0) return;
  const Folder folder;
  fill(folder.path(), true);
  const Child living([&] {
    if (unshare(CLONE_NEWPID) != 0) return false;
    static const Child first([&] { return getpid() == 1 && begin_endless_read(folder); });
    return true;
  });
  const Child refused([&] {
    return in_first_process([&] {
      const auto environment = Environment::open(folder.path(), {});
      return !environment && environment.error().context.contains("has process number 1, too");
    });
  });
  const auto environment = Environment::open(folder.path(), {});
  REQUIRE(environment);
  const auto readers = readers_of(**environment);
  CHECK(std::ranges::count(readers, 1) == 1);
}

// ---- full disks

std::uint64_t allocated_bytes(const std::string& file) {
  struct stat status {};
  return stat(file.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
}

TEST_CASE("The lock file has its room on the disk, also one that an older program has made") {
  const bool older = GENERATE(false, true);
  const Folder folder;
  fill(folder.path(), true);
  if (older) {
    std::filesystem::resize_file(folder.lock_file(), 0);
    std::filesystem::resize_file(folder.lock_file(), 256 << 10);
    REQUIRE(allocated_bytes(folder.lock_file()) < 256 << 10);
  }
  const auto environment = Environment::open(folder.path(), {});
  REQUIRE(environment);
  CHECK(std::filesystem::file_size(folder.lock_file()) >= 256 << 10);
  CHECK(allocated_bytes(folder.lock_file()) >= std::filesystem::file_size(folder.lock_file()));
}

/// A file system of its own, which only this process sees.
bool mount_small_disk(const std::string& directory) {
  return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=2m") == 0;
}

bool fill_disk(const std::string& directory) {
  const int file = ::open((directory + "/filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const std::string page(4096, 'x');
  while (write(file, page.data(), page.size()) > 0) {
  }
  return file >= 0 && errno == ENOSPC;
}

bool can_read_at_once(Environment& environment, std::size_t readers) {
  std::vector<std::unique_ptr<Transaction>> reads;
  for (; readers > 0; --readers) {
    auto read = environment.begin_read();
    if (!read) return false;
    reads.push_back(std::move(*read));
  }
  return true;
}

TEST_CASE("On a full disk an environment is opened, and hundreds read at once") {
  if (geteuid() != 0) return;  // mounting needs it
  const bool reopened = GENERATE(false, true);
  const Folder folder;
  const Child user([&] {
    if (!mount_small_disk(folder.path())) return false;
    auto environment = Environment::open(folder.path(), {.create = true});
    if (!environment || !fill_disk(folder.path())) return false;
    if (reopened) {
      environment->reset();
      environment = Environment::open(folder.path(), {});
    }
    return environment && can_read_at_once(**environment, 300);
  });
}

TEST_CASE("On a full disk an environment without a lock file is refused for want of space") {
  if (geteuid() != 0) return;
  const Folder folder;
  const Child user([&] {
    if (!mount_small_disk(folder.path()) || !Environment::open(folder.path(), {.create = true})) return false;
    std::filesystem::remove(folder.lock_file());
    if (!fill_disk(folder.path())) return false;
    const auto environment = Environment::open(folder.path(), {});
    return !environment && environment.error().code == ErrorCode::no_space;
  });
}

TEST_CASE("On a full disk an environment is opened whose lock file an older program has made") {
  if (geteuid() != 0) return;
  const Folder folder;
  const Child user([&] {
    if (!mount_small_disk(folder.path()) || !Environment::open(folder.path(), {.create = true})) return false;
    std::filesystem::resize_file(folder.lock_file(), 4096);
    std::filesystem::resize_file(folder.lock_file(), 256 << 10);
    if (!fill_disk(folder.path())) return false;
    const auto environment = Environment::open(folder.path(), {});
    return environment && can_read_at_once(**environment, 10);
  });
}

TEST_CASE("A reserve that failed, but not for want of space, is made by the next batch; one cut short, at once") {
  const int error = GENERATE(EIO, EINTR);
  const Folder folder;
  fill(folder.path(), true);
  const auto environment = Environment::open(folder.path(), {});
  REQUIRE(environment);
  const std::string file = folder.path() + "/data.mdb";
  const auto before = allocated_bytes(file);
  error_of_next_reserve = error;
  CHECK((*environment)->keep_reserve());
  CHECK((allocated_bytes(file) == before) == (error != EINTR));
  CHECK((*environment)->keep_reserve());
  CHECK(allocated_bytes(file) > before + (16 << 20));
}

TEST_CASE("A file system that cannot reserve is asked once") {
  const int error = GENERATE(EOPNOTSUPP, ENOSYS);
  const Folder folder;
  fill(folder.path(), true);
  const auto environment = Environment::open(folder.path(), {});
  REQUIRE(environment);
  reserves_asked_for = 0;
  error_of_next_reserve = error;
  for (int batches = 0; batches < 3; ++batches) CHECK((*environment)->keep_reserve());
  CHECK(reserves_asked_for == 1);
}

}  // namespace
}  // namespace lccfs::local

int fallocate(int file, int mode, off_t offset, off_t size_bytes) {
  using namespace lccfs::local;
  static const auto real = reinterpret_cast<decltype(&fallocate)>(dlsym(RTLD_NEXT, "fallocate"));
  ++reserves_asked_for;
  if (const int error = std::exchange(error_of_next_reserve, 0)) return errno = error, -1;
  return real(file, mode, offset, size_bytes);
}
