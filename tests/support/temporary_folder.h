// SPDX-License-Identifier: LGPL-2.1-or-later
// A new folder for files of a test, removed with all that is in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/catch.h"

namespace lccfs::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "lccfs-test-XXXXXX").string();
    REQUIRE(mkdtemp(path.data()));
    path_ = path;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Of a file in it.
  std::filesystem::path operator/(const std::string& name) const { return std::filesystem::path(path_) / name; }

 private:
  std::string path_;
};

}  // namespace lccfs::test
