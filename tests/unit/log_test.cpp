// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/catch.h"
#include "support/temporary_folder.h"

using namespace lccfs;
using namespace std::string_literals;

namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a line of the log is one line, whatever names it holds") {
  const test::TemporaryFolder folder;
  REQUIRE(log::to_file(folder / "log").empty());
  log::warning("host \x1b[2J\nforged line\0 \xff {}"s);
  const std::string text = text_of(folder / "log");
  CHECK(text.find("host \\x1b[2J\\x0aforged line\\x00 \\xff {}\n") != std::string::npos);
  CHECK(std::ranges::count(text, '\n') == 1);
}

TEST_CASE("a log is for its owner alone, and what is in it stays") {
  const test::TemporaryFolder folder;
  const auto mask = umask(0);
  CHECK(log::to_file(folder / "new").empty());
  umask(mask);
  struct stat status {};
  REQUIRE(stat((folder / "new").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  std::ofstream(folder / "old") << "before\n";
  CHECK(log::to_file(folder / "old").empty());
  log::warning("behind");
  CHECK(text_of(folder / "old").starts_with("before\n"));
  CHECK(text_of(folder / "old").ends_with("behind\n"));
}

TEST_CASE("a log makes no folders and follows no link") {
  const test::TemporaryFolder folder;
  CHECK(log::to_file(folder / "mistyped/log") == "No such file or directory");
  CHECK_FALSE(fs::exists(folder / "mistyped"));
  std::ofstream(folder / "precious") << "mine";
  fs::create_symlink(folder / "precious", folder / "link");
  CHECK(log::to_file(folder / "link").find("symbolic link") != std::string::npos);
  CHECK(text_of(folder / "precious") == "mine");
}

TEST_CASE("a log that was renamed continues there until it is reopened") {
  const test::TemporaryFolder folder;
  REQUIRE(log::to_file(folder / "log").empty());
  log::warning("one");
  fs::rename(folder / "log", folder / "log.1");
  log::warning("two");
  log::reopen();
  log::warning("three");
  CHECK(text_of(folder / "log.1").find("two") != std::string::npos);
  CHECK(text_of(folder / "log.1").find("three") == std::string::npos);
  CHECK(text_of(folder / "log").find("three") != std::string::npos);
}

TEST_CASE("who has a line does not wait for who takes it, and what came too fast is counted") {
  const test::TemporaryFolder folder;
  REQUIRE(mkfifo((folder / "log").c_str(), 0600) == 0);
  const int reader = open((folder / "log").c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(log::to_file(folder / "log").empty());
  log::write_behind();
  for (int i = 0; i < 10'000; ++i) log::warning("line " + std::to_string(i));  // a pipe takes some 1,000 of these
  log::reopen();                                                               // nor does a SIGHUP
  std::string text;
  const auto read_more = [reader, &text] {
    std::array<char, 65536> part;
    const auto size = read(reader, part.data(), part.size());
    if (size > 0) text.append(part.data(), static_cast<std::size_t>(size));
  };
  while (text.find(" lines were not written") == std::string::npos) read_more();
  log::warning("the last");
  log::flush();
  for (const char* line : {"the last", "log reopened"}) {
    while (text.find(line) == std::string::npos) read_more();
  }
  CHECK(text.find("line 0\n") < text.find("line 4000\n"));
  CHECK(text.find("line 4000\n") < text.find(" lines were not written"));
  log::to_file("/dev/null");
  close(reader);
}

TEST_CASE("a log that cannot be reopened continues in the old file and says so") {
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "logs");
  REQUIRE(log::to_file(folder / "logs/log").empty());
  fs::rename(folder / "logs", folder / "moved");
  log::reopen();
  log::warning("two");
  CHECK(text_of(folder / "moved/log").find("cannot reopen the log") != std::string::npos);
  CHECK(text_of(folder / "moved/log").ends_with("two\n"));
}
