// SPDX-License-Identifier: LGPL-2.1-or-later
// LMDB's file as it is looked at before LMDB uses it: healthy files pass, whatever was done to them; damaged ones are
// refused, or end the process by its status, never by a signal.
#include "store/local/metadata_pages.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "store/local/environment.h"
#include "support/catch.h"
#include "support/temporary_folder.h"

namespace lccfs::local {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t page_bytes = 4096;

class Metadata : public test::TemporaryFolder {
 public:
  std::string file() const { return *this / "data.mdb"; }
  std::string content() const { return all_of(file()); }
  /// What the last process said that used it.
  std::string said() const { return all_of(*this / "said"); }
  void replace(const std::string& content) const { std::ofstream(file(), std::ios::binary) << content; }

 private:
  static std::string all_of(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

std::unique_ptr<Environment> open(const std::string& path) {
  auto opened = Environment::open(path, {.create = true});
  INFO((opened ? std::string() : opened.error().context));
  REQUIRE(opened);
  return std::move(*opened);
}

TEST_CASE("A walk meets the keys of a prefix in order, from where it is told, and what is removed no more") {
  const Metadata metadata;
  const auto environment = open(metadata.path());
  const auto write = environment->begin_write();
  REQUIRE(write);
  constexpr Table table = Table::watches;
  for (const char* key : {"a", "b1", "b2", "b3", "c1", "c2", "d"}) REQUIRE((*write)->put(table, key, "value"));
  const auto walk = [&](std::string_view prefix, std::string_view after) {
    std::string met;
    REQUIRE((*write)->walk(table, prefix, after, [&](auto key, auto) {
      met.append(key);
      return key != "c2";
    }));
    return met;
  };
  CHECK(walk("b", {}) == "b1b2b3");
  CHECK(walk("b", "b1") == "b2b3");
  CHECK(walk({}, "b3") == "c1c2");
  REQUIRE((*write)->remove_all(table, "b"));
  CHECK(walk({}, {}) == "ac1c2");
}

/// Keys come, grow over their page, shrink and go, in transactions of all sizes.
void churn(Environment& environment, std::mt19937& random) {
  const auto write = environment.begin_write();
  REQUIRE(write);
  const Table table = random() % 3 == 0 ? Table::objects : Table::keys;
  const bool removes = random() % 2 == 0;
  for (auto left = random() % 200; left > 0; --left) {
    const std::string key = "Inode." + std::to_string(random() % 1500) + std::string(random() % 60, 'k');
    const std::size_t size = random() % 20 == 0 ? random() % 30000 : random() % 300;
    const auto done = removes && random() % 4 != 0 ? (*write)->remove_all(table, key.substr(0, 8))
                                                   : (*write)->put(table, key, std::string(size, 'v'));
    REQUIRE(done);
  }
  if (random() % 10 != 0) REQUIRE((*write)->commit());
}

TEST_CASE("a file that LMDB wrote is never taken for damaged") {
  std::mt19937 random(std::random_device{}());
  const Metadata metadata;
  for (int reopened = 0; reopened < 40; ++reopened) {
    const auto environment = open(metadata.path());
    for (int transaction = 0; transaction < 10; ++transaction) churn(*environment, random);
  }
  CHECK(fs::file_size(metadata.file()) > 100 * page_bytes);
}

/// How a process ends that opens the file, walks through all of it and changes it: 0, 1 (an error), 3 (ended within),
/// or 256 and its signal.
/// What it says is in `path`/said.
int use(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen((path + "/said").c_str(), "w", stderr) == nullptr) _exit(2);
    const auto environment = Environment::open(path, {});
    if (!environment) _exit(environment.error().context.find("data.mdb") == std::string::npos ? 2 : 1);
    for (const Table table : {Table::objects, Table::keys}) {
      const auto read = (*environment)->begin_read();
      std::size_t bytes = 0;
      (void)(*read)->walk(table, {}, {}, [&](auto, auto value) {
        bytes += std::string(value).size();
        return true;
      });
      if (bytes == 1) _exit(2);  // so that all is read
    }
    std::mt19937 random(1);  // NOLINT: the same in every process
    for (int transaction = 0; transaction < 5; ++transaction) {
      const auto write = (*environment)->begin_write();
      if (!write) _exit(1);
      for (int i = 0; i < 50; ++i) {
        const std::string key = "Inode." + std::to_string(random() % 1500);
        if (!(*write)->put(Table::keys, key, std::string(random() % 5000, 'w')) ||
            !(*write)->remove_all(Table::objects, key))
          _exit(1);
      }
      if (!(*write)->commit()) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct Whole {
  Metadata metadata;
  std::string content;
  Whole() {
    std::mt19937 random(7);  // NOLINT: the same in every run
    {
      const auto environment = open(metadata.path());
      for (int transaction = 0; transaction < 60; ++transaction) churn(*environment, random);
    }
    content = metadata.content();
  }
};

TEST_CASE("a file that was cut is refused by its name") {
  const Whole whole;
  REQUIRE(use(whole.metadata.path()) == 0);
  std::mt19937 random(std::random_device{}());
  for (int round = 0; round < 40; ++round) {
    const std::size_t size = round < 4 ? static_cast<std::size_t>(round) * page_bytes : random() % whole.content.size();
    INFO(size << " of " << whole.content.size() << " bytes");
    whole.metadata.replace(whole.content.substr(0, size));
    const int ended = use(whole.metadata.path());
    CHECK((ended == 1 || (ended == 0 && size > whole.content.size() * 3 / 4)));  // the last pages may be free ones
  }
}

TEST_CASE("whatever is damaged, no signal ends the process") {
  const Whole whole;
  const auto seed = std::random_device{}();
  std::mt19937 random(seed);
  const std::size_t pages = whole.content.size() / page_bytes;
  for (int round = 0; round < 150; ++round) {
    std::string content = whole.content;
    const std::size_t page = (round % 8 == 0 ? random() % 2 : random() % pages) * page_bytes;
    switch (round % 4) {
      case 0:
        for (std::size_t i = 0; i < page_bytes; ++i) content[page + i] = static_cast<char>(random());
        break;
      case 1:
        content[page + random() % 32] = static_cast<char>(random());
        break;
      case 2:
        for (int i = 0; i < 8; ++i) content[page + random() % page_bytes] ^= static_cast<char>(1U << random() % 8);
        break;
      default:
        content.replace(page, page_bytes, whole.content, random() % pages * page_bytes, page_bytes);
    }
    whole.metadata.replace(content);
    const int ended = use(whole.metadata.path());
    INFO("seed " << seed << ", round " << round << ", page " << page / page_bytes << ": " << whole.metadata.said());
    CHECK(ended < 2);
  }
}

TEST_CASE("a page that says it is dirty, and an entry that reaches into the next, are refused") {
  const Whole whole;
  const bool dirty = GENERATE(true, false);
  int refused = 0;
  for (std::size_t page = 0; page < whole.content.size(); page += page_bytes) {
    std::string content = whole.content;
    constexpr char leaf = 2, dirty_bit = 0x10;
    if (content[page + 10] != leaf || content[page + 12] == 16) continue;
    const std::size_t entry = static_cast<unsigned char>(content[page + 16]) |
                              std::size_t{static_cast<unsigned char>(content[page + 17])} << 8U;
    content[dirty ? page + 10 : page + entry] ^= dirty ? dirty_bit : char{64};
    whole.metadata.replace(content);
    const int ended = use(whole.metadata.path());
    INFO("page " << page / page_bytes << ": " << whole.metadata.said());
    CHECK(ended < 2);  // some pages are free ones
    refused += ended;
  }
  CHECK(refused > 10);
}

/// A page is damaged behind the back of who has the file open: nothing has looked at it again.
TEST_CASE("a fault in a page ends the process by its status") {
  const Whole whole;
  const pid_t child = fork();
  if (child == 0) {
    std::fclose(stderr);
    const auto environment = open(whole.metadata.path());
    fs::resize_file(whole.metadata.file(), 2 * page_bytes);
    const auto read = environment->begin_read();
    _exit((*read)->get(Table::objects, "Inode.1") ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
}

}  // namespace
}  // namespace lccfs::local
