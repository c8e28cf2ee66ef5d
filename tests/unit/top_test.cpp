// SPDX-License-Identifier: LGPL-2.1-or-later
// What `lccfs top` makes of two looks at an endpoint.
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.h"
#include "cli/metrics_page.h"
#include "cli/top_looks.h"
#include "cli/top_table.h"
#include "support/catch.h"
#include "support/fake_clock.h"

using namespace lccfs;
using namespace lccfs::cli;
using namespace std::chrono_literals;

namespace {

MetricsPage parsed(std::string_view text) {
  auto page = MetricsPage::parse(text);
  REQUIRE(page);
  return std::move(*page);
}

constexpr const char* before = R"(lccfs_info{program="lccfs-fuse",mountpoint="/mnt"} 1
lccfs_operation_duration_seconds_count{operation="read"} 100
lccfs_operation_duration_seconds_sum{operation="read"} 1
lccfs_operation_read_bytes_total 0
lccfs_directory_duration_seconds_count{directory="vm1",work="read"} 100
lccfs_directory_duration_seconds_sum{directory="vm1",work="read"} 1
lccfs_directory_duration_seconds_count{directory="idle",work="read"} 7
)";
constexpr const char* after = R"(lccfs_info{program="lccfs-fuse",mountpoint="/mnt"} 1
lccfs_operation_duration_seconds_count{operation="read"} 300
lccfs_operation_duration_seconds_sum{operation="read"} 1.5
lccfs_operation_duration_seconds_count{operation="lookup"} 50
lccfs_operation_read_bytes_total 4194304
lccfs_operation_in_flight 3
lccfs_operation_slow_total{operation="read"} 2
lccfs_directory_duration_seconds_count{directory="vm1",work="read"} 300
lccfs_directory_duration_seconds_sum{directory="vm1",work="read"} 1.5
lccfs_directory_duration_seconds_count{directory="idle",work="read"} 7
lccfs_directory_duration_seconds_count{directory="new",work="write"} 10
lccfs_directory_duration_seconds_sum{directory="new",work="write"} 0.1
)";

TopTable table() {
  TopTable result;
  add_mount(result, parsed(before), parsed(after), 2s);
  return result;
}

}  // namespace

TEST_CASE("metrics are read with their labels, whatever these hold") {
  const auto page = parsed("# HELP a b\na{x=\"q\\\"\\\\,}=\",y=\"2\"} 1.5\na{x=\"z\"} 2\nb 3e+02\n");
  CHECK(page.sum("a") == 3.5);
  CHECK(page.sum("a", {{"x", "q\"\\,}="}}) == 1.5);
  CHECK(page.sum("a", {{"x", "none"}}) == 0);
  CHECK(page.sum("b") == 300);
  CHECK(page.sum("c") == 0);
  CHECK(page.values_of("a", "x") == std::vector<std::string>{"q\"\\,}=", "z"});
}

TEST_CASE("what is no metrics is refused, whatever bytes it holds") {
  for (const char* text : {"<html>", "a{", "a{x", "a{x=", "a{x=\"", "a{x=\"\\", "a{x=\"1\"", "a{x=\"1\"}", "a ", "a x",
                           "\xff\xfe", "{}"}) {
    INFO(text);
    CHECK_FALSE(MetricsPage::parse(text));
  }
}

TEST_CASE("rates are per second between two looks, and latencies means") {
  const auto rows = table();
  REQUIRE(rows.mounts.size() == 1);
  const TopRow& mount = rows.mounts.front();
  CHECK(mount.name == "/mnt");
  CHECK(mount.reads == 100);
  CHECK(mount.others == 25);
  CHECK(mount.read_bytes == 2097152);
  CHECK(mount.read_ms == 2.5);
  CHECK_FALSE(mount.write_ms);
  CHECK(mount.in_flight == 3);
  CHECK(mount.slow == 2);
}

TEST_CASE("directories that did something are listed, the busiest first") {
  const auto rows = table();
  REQUIRE(rows.directories.size() == 2);
  CHECK(rows.directories[0].name == "vm1");
  CHECK(rows.directories[1].name == "new");
  CHECK(rows.directories[1].writes == 5);
}

TEST_CASE("a counter that has begun anew counts from zero") {
  TopTable rows;
  add_mount(rows, parsed(after), parsed(before), 1s);
  CHECK(rows.mounts.front().reads == 100);
}

TEST_CASE("the table has colours on a terminal alone, and no more lines than are wanted") {
  const std::string plain = top_as_text(table(), Colours::none, 0);
  CHECK(plain.find('\x1b') == std::string::npos);
  CHECK(plain.find("vm1") != std::string::npos);
  CHECK(top_as_text(table(), Colours::terminal, 0).find('\x1b') != std::string::npos);
  const std::string cut = top_as_text(table(), Colours::none, 4);
  CHECK(std::ranges::count(cut, '\n') == 4);
  CHECK(cut.find("new") == std::string::npos);
}

TEST_CASE("a long name is cut between its characters") {
  for (const std::string character : {"\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x92\xbe"}) {
    for (std::size_t more = 0; more < 4; ++more) {
      TopTable rows;
      auto& name = rows.mounts.emplace_back().name;
      for (int i = 0; i < 20; ++i) name += character;
      name.append(more, 'x');
      std::istringstream lines(top_as_text(rows, Colours::none, 0));
      for (std::string line; std::getline(lines, line);) CHECK(printable(line) == line);
    }
  }
}

TEST_CASE("for programs there is all of it as JSON") {
  const auto json = top_as_json(table());
  CHECK(json["mounts"][0]["reads_per_second"] == 100.0);
  CHECK(json["mounts"][0]["write_milliseconds"].is_null());
  CHECK(json["directories"][1]["name"] == "new");
}

TEST_CASE("a mount that is slow to answer is shown again at the next look, with the rates of all the time") {
  test::FakeClock clock;
  std::vector<RunningProgram> programs(2);
  programs[0] = {{.socket = "slow", .address = "", .port = 0}, parsed(before)};
  programs[1] = {{.socket = "ends", .address = "", .port = 0}, parsed(before)};
  ErrorCode slow = ErrorCode::timed_out;
  TopLooks looks(programs, clock, [&](const metrics::HttpPlace& place) -> Result<MetricsPage> {
    if (place.socket == "ends") return failure(ErrorCode::not_found, "nobody");
    if (slow != ErrorCode::interrupted) return failure(slow, "no answer");
    return parsed(after);
  });
  for (const auto code : {ErrorCode::timed_out, ErrorCode::io, ErrorCode::invalid}) {
    slow = code;
    clock.advance(1s);
    CHECK(looks.look_again().mounts.empty());
    CHECK_FALSE(looks.all_have_ended());
  }
  slow = ErrorCode::interrupted;  // it answers
  clock.advance(1s);
  const auto rows = looks.look_again();
  REQUIRE(rows.mounts.size() == 1);
  CHECK(rows.mounts.front().reads == 50);
  slow = ErrorCode::not_found;
  CHECK(looks.look_again().mounts.empty());
  CHECK(looks.all_have_ended());
}
