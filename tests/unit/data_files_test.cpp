// SPDX-License-Identifier: LGPL-2.1-or-later
// Files of data objects: what has to be synced before a change of one is durable, also after one that was cut short. And
// calls of the system that fail, or meet another thread: this program has its own of some.
#include "store/local/data_files.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <utility>

#include "store/local/data_queue.h"
#include "support/catch.h"
#include "support/temporary_folder.h"

namespace lccfs::local {
namespace {

int calls_of_readdir_before_it_fails = -1;  // -1: it does not
std::function<void()> before_next_copy;
std::deque<std::size_t> bytes_of_quick_reads;  // that many at most, one after the other
std::atomic<int> slow_reads = 0;

class DataFolder {
 public:
  DataFolder() { REQUIRE(directory_); }

  /// As a process of its own would use it.
  DataFiles files() const { return DataFiles(directory_.get()); }
  int descriptor() const { return directory_.get(); }
  const std::string& path() const { return folder_.path(); }
  /// Of all files and directories.
  bool all_have_plain_modes() const {
    bool plain = true;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      struct stat status {};
      REQUIRE(::stat(entry.path().c_str(), &status) == 0);
      plain &= (status.st_mode & 07777) == (entry.is_directory() ? 0700 : 0600);
    }
    return plain;
  }

 private:
  const test::TemporaryFolder folder_;
  const Descriptor directory_{::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

/// While it lives, no file can be written to.
class NoWrites {
 public:
  NoWrites() {
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit none{0, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &none) == 0);
  }
  ~NoWrites() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_before_);
  }
  NoWrites(const NoWrites&) = delete;
  NoWrites& operator=(const NoWrites&) = delete;

 private:
  rlimit before_{};
  void (*const handler_before_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

constexpr const char* made = "Data.7.0";

Result<Unsynced> write(const DataFiles& files, const std::string& object) {
  static constexpr char byte = 'x';
  return files.write(object, {{0, {nullptr, &byte, 1}}});
}

/// The next change of the object has to sync its made, and once it is synced, no further one.
void check_name_is_synced_next(const DataFolder& folder) {
  const auto next = write(folder.files(), made);
  REQUIRE(next);
  CHECK(next->directory);
  REQUIRE(folder.files().sync(made, *next));
  CHECK(folder.all_have_plain_modes());
  const auto further = write(folder.files(), made);
  REQUIRE(further);
  CHECK_FALSE(further->directory);
}

TEST_CASE("The name of a data file is synced once") {
  const DataFolder folder;
  check_name_is_synced_next(folder);
}

TEST_CASE("A name that a failed write or copy has left is synced by the next write") {
  const bool copies = GENERATE(false, true);
  const DataFolder folder;
  const auto files = folder.files();
  const std::string source = "Data.6.0";
  REQUIRE(files.sync(source, *write(files, source)));
  {
    const NoWrites no_writes;
    const auto done = copies ? files.copy(source, made) : write(files, made);
    REQUIRE_FALSE(done);
  }
  CHECK(files.extents(made, 0, 1)->empty());
  check_name_is_synced_next(folder);
}

TEST_CASE("A name that a process has left that was killed before its sync is synced by the next write") {
  const DataFolder folder;
  REQUIRE(write(folder.files(), made));
  check_name_is_synced_next(folder);
}

TEST_CASE("A removal that a process has left before its sync is synced by who makes zeros of it, or cuts it") {
  const bool cuts = GENERATE(false, true);
  const DataFolder folder;
  const auto files = folder.files();
  REQUIRE(files.sync(made, *write(files, made)));
  REQUIRE(files.remove(made));
  const auto unsynced = cuts ? files.truncate(made, 0) : files.zero(made, 0, 1);
  REQUIRE(unsynced);
  CHECK(unsynced->directory);
}

TEST_CASE("A name whose sync came after another change of the object needs none either") {
  const DataFolder folder;
  auto unsynced = write(folder.files(), made);
  REQUIRE(unsynced);
  REQUIRE(folder.files().remove(made));
  auto later = write(folder.files(), made);
  REQUIRE(later);
  unsynced->add(std::move(*later));
  REQUIRE(folder.files().sync(made, *unsynced));
  CHECK(folder.all_have_plain_modes());
}

TEST_CASE("A directory that cannot be read to its end is none that ends there") {
  const DataFolder folder;
  for (const char* name : {"/a", "/b", "/c"}) std::ofstream(folder.path() + name) << "x";
  for (int calls = 0; calls < 5; ++calls) {
    calls_of_readdir_before_it_fails = calls;
    const auto names = names_in(folder.descriptor(), ".", "list it");
    REQUIRE_FALSE(names);
    CHECK((names.error().code == ErrorCode::io && names.error().context.starts_with("list it: ")));
  }
  errno = EIO;  // of some call before
  const auto names = names_in(folder.descriptor(), ".", "list it");
  REQUIRE(names);
  CHECK(names->size() == 3);
}

TEST_CASE("A file in a folder where nobody looks for it is named, with the place where it belongs") {
  namespace fs = std::filesystem;
  const DataFolder folder;
  const auto files = folder.files();
  REQUIRE(write(files, made));
  unsigned number = 0;
  REQUIRE(files.names(number, DataFiles::fan_out) == std::vector<std::string>{made});
  const fs::path right = fs::directory_iterator(folder.path())->path();
  const std::string wrong_name = right.filename() == "00" ? "01" : "00";
  const fs::path wrong = folder.path() + "/" + wrong_name;
  fs::create_directory(wrong);
  fs::rename(right / made, wrong / made);
  number = 0;
  const auto refused = files.names(number, DataFiles::fan_out);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::corrupt);
  CHECK(refused.error().context == "data/" + wrong_name +
                                       "/Data.7.0 is in a wrong folder, where nothing finds it: move it to data/" +
                                       right.filename().string() + ", or remove it");
  fs::rename(wrong / made, right / made);
  fs::remove(wrong);
  number = 0;
  CHECK(files.names(number, DataFiles::fan_out) == std::vector<std::string>{made});
}

TEST_CASE("What is cut off the source of a copy meanwhile is zeros in the copy, whatever was there") {
  constexpr std::size_t size_bytes = 8192, left_bytes = 4096;
  const DataFolder folder;
  const auto files = folder.files();
  const std::string source = "Data.8.0", target = "Data.9.0";
  const std::string new_bytes(size_bytes, 'n'), old_bytes(size_bytes, 'o');
  REQUIRE(files.write(source, {{0, {nullptr, new_bytes.data(), size_bytes}}}));
  REQUIRE(files.write(target, {{0, {nullptr, old_bytes.data(), size_bytes}}}));
  before_next_copy = [&] { CHECK(files.truncate(source, left_bytes)); };
  REQUIRE(files.copy(source, target));
  CHECK_FALSE(before_next_copy);
  std::string copied(size_bytes, '?');
  REQUIRE(files.read(target, 0, copied, 0) == size_bytes);
  CHECK((copied == std::string(left_bytes, 'n') + std::string(size_bytes - left_bytes, '\0')));
}

/// As the store reads, which is first quickly.
std::string read_queued(DataQueue& queue, std::uint64_t offset, std::size_t size_bytes) {
  std::string bytes(size_bytes, '?');
  std::promise<Result<std::size_t>> promise;
  queue.read(made, offset, bytes, [&](Result<std::size_t> size) { promise.set_value(std::move(size)); });
  const auto size = promise.get_future().get();
  REQUIRE(size);
  return bytes.substr(0, *size);
}

TEST_CASE("A quick read that gets no bytes before the end of the file, as of Linux 5.9 and 5.10, is done once more") {
  const bool is_first = GENERATE(true, false);
  const DataFolder folder;
  REQUIRE(folder.files().write(made, {{0, {nullptr, "abcdef", 6}}}));
  DataQueue queue(folder.descriptor());
  bytes_of_quick_reads = is_first ? std::deque<std::size_t>{0} : std::deque<std::size_t>{3, 0};
  CHECK(read_queued(queue, 0, 6) == "abcdef");
  CHECK(bytes_of_quick_reads.empty());
}

TEST_CASE("A quick read that ends where the file ends is believed") {
  const DataFolder folder;
  REQUIRE(folder.files().write(made, {{0, {nullptr, "abcdef", 6}}}));
  DataQueue queue(folder.descriptor());
  slow_reads = 0;
  CHECK(read_queued(queue, 2, 10) == "cdef");
  CHECK(read_queued(queue, 6, 10).empty());
  CHECK(read_queued(queue, 99, 10).empty());
  CHECK(slow_reads == 0);
}

}  // namespace
}  // namespace lccfs::local

dirent* readdir(DIR* listing) {
  using namespace lccfs::local;
  static const auto real = reinterpret_cast<decltype(&readdir)>(dlsym(RTLD_NEXT, "readdir"));
  if (calls_of_readdir_before_it_fails < 0) return real(listing);
  if (calls_of_readdir_before_it_fails-- > 0) return real(listing);
  errno = EIO;
  return nullptr;
}

ssize_t copy_file_range(int source, off64_t* from, int target, off64_t* to, std::size_t size_bytes, unsigned flags) {
  static const auto real = reinterpret_cast<decltype(&copy_file_range)>(dlsym(RTLD_NEXT, "copy_file_range"));
  auto& act = lccfs::local::before_next_copy;
  if (act) std::exchange(act, nullptr)();
  return real(source, from, target, to, size_bytes, flags);
}

ssize_t preadv2(int file, const iovec* parts, int count, off_t offset, int flags) {
  using namespace lccfs::local;
  static const auto real = reinterpret_cast<decltype(&preadv2)>(dlsym(RTLD_NEXT, "preadv2"));
  if ((flags & RWF_NOWAIT) == 0) ++slow_reads;
  if ((flags & RWF_NOWAIT) == 0 || bytes_of_quick_reads.empty())
    return real(file, parts, count, offset, flags & ~RWF_NOWAIT);  // not every file system has quick reads
  const iovec limited{parts->iov_base, std::min(parts->iov_len, bytes_of_quick_reads.front())};
  bytes_of_quick_reads.pop_front();
  return real(file, &limited, 1, offset, 0);
}
