// SPDX-License-Identifier: LGPL-2.1-or-later
// Files of data objects: what has to be synced before a change of one is durable, also after one that was cut short.
#include "store/local/data_files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "support/catch.h"
#include "support/temporary_folder.h"

namespace lccfs::local {
namespace {

class DataFolder {
 public:
  DataFolder() { REQUIRE(directory_); }

  /// As a process of its own would use it.
  DataFiles files() const { return DataFiles(directory_.get()); }
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

}  // namespace
}  // namespace lccfs::local
