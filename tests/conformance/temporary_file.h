// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/catch.h"

namespace lccfs::conformance {

/// A file that goes with the case.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    const int fd = mkstemp(path_.data());
    REQUIRE(fd >= 0);
    std::ofstream(path_) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "lccfs-conf-XXXXXX").string();
};

}  // namespace lccfs::conformance
