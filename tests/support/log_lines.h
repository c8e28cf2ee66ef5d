// SPDX-License-Identifier: LGPL-2.1-or-later
// What a case has logged.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/log.h"
#include "support/catch.h"

namespace lccfs::test {

/// The log's lines while it lives, without what is before their text.
class LogLines {
 public:
  LogLines() : path_((std::filesystem::temp_directory_path() / ("lccfs-lines-" + std::to_string(getpid()))).string()) {
    REQUIRE(log::to_file(path_).empty());
  }
  ~LogLines() { std::filesystem::remove(path_); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  std::vector<std::string> all() const { return with(""); }
  /// Those with this in them.
  std::vector<std::string> with(const std::string& part) const {
    std::ifstream file(path_);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      if (line.find(part) != std::string::npos) lines.push_back(line.substr(line.find("[warning] ") + 10));
    }
    return lines;
  }

 private:
  const std::string path_;
};

}  // namespace lccfs::test
