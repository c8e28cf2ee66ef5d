// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options/command_line.h"

#include "support/catch.h"

using namespace lccfs;
using namespace std::chrono_literals;

namespace {

Result<VolumeAddress> parse_address(const std::vector<std::string>& words) {
  LCCFS_TRY(const options::Values values, options::parse(words, options::address_options()));
  return options::address_of(values);
}

}  // namespace

TEST_CASE("a size is a number with a suffix for a power of 1024") {
  struct Row {
    const char* text;
    std::uint64_t size_bytes;
  };
  for (const Row& row : {Row{"0", 0}, Row{"65536", 65536}, Row{"64K", 65536}, Row{"4M", 4U << 20}, Row{"1G", 1U << 30},
                         Row{"2T", 2ULL << 40}, Row{"18446744073709551615", UINT64_MAX}}) {
    INFO(row.text);
    const auto size = options::parse_size(row.text);
    REQUIRE(size);
    CHECK(*size == row.size_bytes);
  }
}

TEST_CASE("what is not a size is refused") {
  for (const char* text : {"", "K", "-1", "+1", " 1", "1 ", "4m", "4MB", "4MiB", "0x10", "1.5M", "18446744073709551616",
                           "18446744073709551615K", "99999999999T"}) {
    INFO(text);
    const auto size = options::parse_size(text);
    REQUIRE_FALSE(size);
    CHECK(size.error().code == ErrorCode::invalid);
  }
}

TEST_CASE("a number is whole, and has no suffix") {
  CHECK(*options::parse_number("0") == 0);
  CHECK(*options::parse_number("18446744073709551615") == UINT64_MAX);
  for (const char* text : {"", "4K", "-1", "1.0", " 1", "18446744073709551616"}) {
    INFO(text);
    CHECK_FALSE(options::parse_number(text));
  }
}

TEST_CASE("seconds may have decimals") {
  CHECK(*options::parse_seconds("0") == 0ns);
  CHECK(*options::parse_seconds("1") == 1s);
  CHECK(*options::parse_seconds("0.5") == 500ms);
  CHECK(*options::parse_seconds("1.000000001") == 1s + 1ns);
}

TEST_CASE("what is not a number of seconds is refused") {
  for (const char* text : {"", ".", "1.", ".5", "-1", "1s", "1.2.3", "0.0000000001", "nan", "1e3", "9999999999"}) {
    INFO(text);
    CHECK_FALSE(options::parse_seconds(text));
  }
}

TEST_CASE("a bad value is refused by the name of its option") {
  options::Description description;
  description.add_options()("jobs,j", boost::program_options::value<std::string>());
  const auto values = options::parse({"-j", "7K"}, description);
  REQUIRE(values);
  CHECK(options::number_of(*values, "jobs", 1, 9).error().context.starts_with("--jobs: "));
  CHECK(options::seconds_of(*values, "jobs").error().context.starts_with("--jobs: "));
  CHECK(options::size_of(*values, "jobs", 7168) == 7168);
  CHECK(options::size_of(*values, "jobs", 7167).error().context == "--jobs must be at most 7167");
  const auto other = options::parse({"--jobs", "10"}, description);
  CHECK(options::number_of(*other, "jobs", 1, 10) == 10);
  CHECK(options::number_of(*other, "jobs", 1, 9).error().context == "--jobs must be from 1 to 9");
}

TEST_CASE("an address is a pool with its cluster, or a directory") {
  const auto full = parse_address({"-c", "/x/rados.conf", "-p", "1", "-n", "nova", "--id", "client.vm"});
  REQUIRE(full);
  CHECK(full->conf_file == "/x/rados.conf");
  CHECK(full->pool == "1");
  CHECK(full->pool_namespace == "nova");
  CHECK(full->client_id == "vm");
  CHECK(full->local_directory.empty());

  const auto short_one = parse_address({"--pool=vms"});
  REQUIRE(short_one);
  CHECK(short_one->conf_file == "/etc/ceph/ceph.conf");
  CHECK(short_one->client_id == "admin");

  const auto local = parse_address({"--local", "/srv//volume/"});
  REQUIRE(local);
  CHECK(local->local_directory == "/srv/volume");
  CHECK(local->pool.empty());
}

TEST_CASE("relative paths in an address are made absolute") {
  CHECK(parse_address({"--local", "volume"})->local_directory.front() == '/');
  CHECK(parse_address({"-p", "x", "-c", "ceph.conf"})->conf_file.front() == '/');
}

TEST_CASE("an address that is none is refused with one line") {
  const std::vector<std::vector<std::string>> table = {
      {},
      {"-c", "/etc/ceph/ceph.conf"},
      {"-p"},
      {"-p", ""},
      {"--local", ""},
      {"--local", "/a", "-p", "b"},
      {"--local", "/a", "-c", "/b"},
      {"--local", "/a", "-n", "b"},
      {"--local", "/a", "--id", "b"},
      {"-p", "a", "-p", "b"},
      {"-p", "a", "--id", "client."},
      {"-p", "a", "b"},
      {"-p", "a", "--unknown"},
      {"--poo", "a"},
  };
  for (const auto& words : table) {
    INFO(words.size() << " words, the last: " << (words.empty() ? "" : words.back()));
    const auto address = parse_address(words);
    REQUIRE_FALSE(address);
    CHECK(address.error().code == ErrorCode::invalid);
    CHECK_FALSE(address.error().context.empty());
    CHECK(address.error().context.find('\n') == std::string::npos);
  }
}
