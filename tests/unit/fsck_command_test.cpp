// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs-fsck's words, lines and exit status.
#include <nlohmann/json.hpp>
#include <sstream>

#include "fsck/command.h"
#include "fsck/report.h"
#include "repair/users.h"
#include "support/catch.h"

namespace lccfs {
namespace {

using fsck::parse_command;
using fsck::Summary;
using std::chrono::milliseconds;
using std::chrono::seconds;
using What = fsck::Command::What;

const std::vector<std::string> local{"--local", "/srv/volume"};

std::vector<std::string> with(std::vector<std::string> words) {
  words.insert(words.begin(), local.begin(), local.end());
  return words;
}

TEST_CASE("without more words a volume is only checked") {
  const auto command = parse_command(local);
  REQUIRE(command);
  CHECK(command->what == What::check);
  CHECK(command->address.local_directory == "/srv/volume");
  CHECK(command->jobs == 16);
  CHECK_FALSE(command->json);
  CHECK_FALSE(command->force);
}

TEST_CASE("every option is understood") {
  const auto command = parse_command(with({"--repair", "--orphans", "delete", "--json", "-j", "3", "--force"}));
  REQUIRE(command);
  CHECK(command->what == What::repair);
  CHECK(command->orphans == repair::Orphans::remove);
  CHECK(command->jobs == 3);
  CHECK(command->json);
  CHECK(command->force);
  CHECK(parse_command(with({"--repair"}))->orphans == repair::Orphans::keep);
  CHECK(parse_command({"--version"})->answer.starts_with("lccfs-fsck "));
}

TEST_CASE("a client is described by its number, and where it is mounted, if it is, or by what it is") {
  repair::User user{InstanceId{3}, {}, true};
  user.record.pid = 7;
  user.record.host = "host";
  CHECK(describe(user) == "instance 3: pid 7 on host");
  user.record.mount_id = "/mnt";
  CHECK(describe(user) == "instance 3: pid 7 on host, mounted at /mnt");
  user.record.mount_id = "lccfs-gc";
  CHECK(describe(user) == "instance 3: pid 7 on host, lccfs-gc");
}

TEST_CASE("wrong words are answered with what to do") {
  const auto error_of = [](const std::vector<std::string>& words) {
    const auto command = parse_command(words);
    return command ? "" : command.error().context;
  };
  CHECK(error_of({}).find("--local") != std::string::npos);
  CHECK(error_of(with({"--orphans", "delete"})).find("--repair") != std::string::npos);
  CHECK(error_of(with({"--repair", "--orphans", "eat"})).find("eat") != std::string::npos);
  CHECK(error_of(with({"-j", "0"})).find("1024") != std::string::npos);
  CHECK(error_of(with({"-j", "1025"})).find("1024") != std::string::npos);
  CHECK(error_of(with({"-j", "many"})).find("many") != std::string::npos);
  CHECK(error_of(with({"--nonsense"})).find("nonsense") != std::string::npos);
  CHECK(error_of(with({"volume"})).find("volume") != std::string::npos);
}

TEST_CASE("how much is to be checked is known only of a volume that has its pool to itself") {
  const check::Progress progress{.objects_done = 5, .objects_expected = 100};
  CHECK(fsck::objects_expected(parse_command({"-p", "vms"})->address, progress) == 100);
  CHECK(fsck::objects_expected(parse_command({"-p", "vms", "-n", "nova"})->address, progress) == 0);
  CHECK(fsck::objects_expected(parse_command(local)->address, progress) == 100);
}

TEST_CASE("the help has examples and the exit status") {
  const std::string help = parse_command({"--help"})->answer;
  CHECK(help.find("lccfs-fsck -p vms") != std::string::npos);
  CHECK(help.find("Exit status") != std::string::npos);
}

TEST_CASE("the exit status is fsck's, added up") {
  Summary summary;
  summary.complete = true;
  CHECK(fsck::exit_status(summary) == 0);
  summary.repaired = 2;
  CHECK(fsck::exit_status(summary) == 1);
  summary.left = 3;
  CHECK(fsck::exit_status(summary) == 5);
  summary.complete = false;
  CHECK(fsck::exit_status(summary) == 13);
}

check::Finding finding(std::string text) {
  return {.kind = check::Finding::Kind::orphan, .object = "Inode.7", .text = std::move(text)};
}

Summary some_summary() {
  Summary summary;
  summary.check = {.objects = 12, .directories = 3, .other_inodes = 4, .data_objects = 5, .findings = 1};
  summary.repaired = 1;
  summary.left = 1;
  summary.complete = true;
  summary.took = milliseconds(1540);
  return summary;
}

TEST_CASE("as text there is one line a finding, and a summary") {
  std::ostringstream out;
  const auto report = fsck::text_report(out);
  report->found(finding("lost"));
  report->dealt_with(finding("lost"), {true, "found"});
  report->dealt_with(finding("lost"), {false, "who knows"});
  report->end(some_summary());
  CHECK(out.str() ==
        "orphan: Inode.7: lost\n"
        "orphan: Inode.7: lost: repaired: found\n"
        "orphan: Inode.7: lost: left: who knows\n"
        "12 objects: 3 directories, 4 other inodes, 5 data objects. 2 findings, 1 repaired, 1 left, in 1.5 s\n");
}

TEST_CASE("a finding is one line, whatever names it holds") {
  std::ostringstream out;
  auto hostile = finding("entry \"a\x1b[2J\nb\"");
  hostile.object = "rbd\n";
  const auto report = fsck::text_report(out);
  report->found(hostile);
  report->dealt_with(hostile, {true, "moved to /\x9b"});
  CHECK(out.str() ==
        "orphan: rbd\\x0a: entry \"a\\x1b[2J\\x0ab\"\n"
        "orphan: rbd\\x0a: entry \"a\\x1b[2J\\x0ab\": repaired: moved to /\\x9b\n");
}

TEST_CASE("a summary of what came to no end says so") {
  std::ostringstream out;
  auto summary = some_summary();
  summary.complete = false;
  fsck::text_report(out)->end(summary);
  CHECK(out.str().find("Not all was looked at") != std::string::npos);
}

TEST_CASE("as JSON there is one document, whatever bytes names have") {
  std::ostringstream out;
  const auto report = fsck::json_report(out);
  report->found(finding("\xff\n"));
  report->dealt_with(finding("lost"), {false, "who knows"});
  report->end(some_summary());
  const auto json = nlohmann::json::parse(out.str());
  REQUIRE(json["findings"].size() == 2);
  CHECK(json["findings"][0]["kind"] == "orphan");
  CHECK(json["findings"][0]["text"] == "\\xff\\x0a");
  CHECK_FALSE(json["findings"][0].contains("repaired"));
  CHECK(json["findings"][1]["object"] == "Inode.7");
  CHECK(json["findings"][1]["repaired"] == false);
  CHECK(json["findings"][1]["repair"] == "who knows");
  CHECK(json["summary"]["objects"] == 12);
  CHECK(json["summary"]["left"] == 1);
  CHECK(json["summary"]["complete"] == true);
}

TEST_CASE("JSON without findings is a document, too") {
  std::ostringstream out;
  fsck::json_report(out)->end({});
  CHECK(nlohmann::json::parse(out.str())["findings"].empty());
}

}  // namespace
}  // namespace lccfs
