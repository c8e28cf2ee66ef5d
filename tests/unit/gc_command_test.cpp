// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs-gc's command line.
#include "gc/command.h"

#include "support/catch.h"

using namespace lccfs;
using namespace lccfs::gc;
using namespace std::chrono_literals;

TEST_CASE("a volume alone is a daemon with its defaults") {
  const auto command = parse_command({"-c", "/etc/ceph/ceph.conf", "-p", "vms", "-n", "nova"});
  REQUIRE(command);
  CHECK(command->what == Command::What::daemon);
  CHECK(command->address.pool == "vms");
  CHECK(command->address.pool_namespace == "nova");
  CHECK(command->jobs == 16);
  CHECK(command->operations_per_second == 0);
  CHECK(command->interval == 60s);
  CHECK_FALSE(command->grace);
  CHECK_FALSE(command->foreground);
  CHECK(command->log.to_syslog);
}

TEST_CASE("every option of the collector is understood") {
  const auto command = parse_command(
      {"--local", "/v", "-j", "4", "--rate", "500", "--interval", "0.5", "--grace", "0", "-f", "--log-file", "/l"});
  REQUIRE(command);
  CHECK(command->jobs == 4);
  CHECK(command->operations_per_second == 500);
  CHECK(command->interval == 500ms);
  CHECK(command->grace == 0s);
  CHECK(command->foreground);
  CHECK(command->log.file == "/l");
}

TEST_CASE("what runs once stays in the foreground, and may answer in JSON") {
  const auto once = parse_command({"--local", "/v", "--once", "--json"});
  REQUIRE(once);
  CHECK(once->what == Command::What::once);
  CHECK(once->json);
  CHECK(once->foreground);
  CHECK_FALSE(once->log.to_syslog);
  CHECK(parse_command({"--local", "/v", "--dry-run"})->what == Command::What::dry_run);
  CHECK(parse_command({"--local", "/v", "--once", "--dry-run"})->what == Command::What::dry_run);
}

TEST_CASE("lccfs-gc: help and version need nothing else") {
  CHECK(parse_command({"--help"})->answer.find("Examples:") != std::string::npos);
  CHECK(parse_command({"--version"})->answer.starts_with("lccfs-gc "));
}

TEST_CASE("a bad lccfs-gc command is refused with one line") {
  const std::vector<std::vector<std::string>> table = {
      {},
      {"--once"},
      {"--local", "/v", "now"},
      {"--local", "/v", "-p", "vms"},
      {"--local", "/v", "--json"},
      {"--local", "/v", "-j", "0"},
      {"--local", "/v", "-j", "1025"},
      {"--local", "/v", "-j", "many"},
      {"--local", "/v", "--rate", "-1"},
      {"--local", "/v", "--interval", "0"},
      {"--local", "/v", "--metrics-port", "0"},
      {"--local", "/v", "--metrics-port", "65536"},
      {"--local", "/v", "--metrics-address", "localhost"},
      {"--local", "/v", "--metrics-port", "9475", "--once"},
      {"--local", "/v", "--slow-ms", "2s"},
      {"--local", "/v", "--interval", "soon"},
      {"--local", "/v", "--once", "--interval", "5"},
      {"--local", "/v", "--grace", "1.5"},
      {"--local", "/v", "--grace", "1000000001"},
      {"--local", "/v", "--log-level", "loud"},
      {"--local", "/v", "--once=yes"},
  };
  for (const auto& words : table) {
    INFO(words.size() << " words, the last: " << (words.empty() ? "" : words.back()));
    const auto command = parse_command(words);
    REQUIRE_FALSE(command);
    CHECK(command.error().code == ErrorCode::invalid);
    CHECK(command.error().context.find('\n') == std::string::npos);
  }
}
