// SPDX-License-Identifier: LGPL-2.1-or-later
// What lccfs-gc says of its passes.
#include "gc/report.h"

#include <nlohmann/json.hpp>

#include "support/catch.h"

using namespace lccfs;
using namespace lccfs::gc;
using namespace std::chrono_literals;
using reclaim::PassReport;

namespace {

PassReport some_pass() {
  PassReport report;
  report.items_seen = 1200;
  report.items_done = 1180;
  report.items_left = 20;
  report.inodes_removed = 20'001;
  report.data_objects_removed = 256;
  report.bytes_freed = 1ULL << 30;
  report.took = 2345ms;
  return report;
}

reclaim::OtherInstance some_client() { return {.id = InstanceId{7}, .host = "alpha\x1b", .pid = 4711}; }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a pass is one line: looked at, done, left, freed, seconds") {
  CHECK(report_line(some_pass()) ==
        "1,200 items looked at, 1,180 done, 20 left; reclaimed 20,001 inodes and 256 data objects, 1.00 GiB; 2.3 s");
}

TEST_CASE("what a pass seldom meets is told only then") {
  PassReport report = some_pass();
  report.names_removed = 3;
  report.inodes_corrected = 1;
  report.instances_removed = 2;
  report.open_elsewhere = 4;
  report.gone = {some_client()};
  report.silent = {some_client()};
  report.damaged = {"Inode.9: attr: wrong checksum"};
  const std::string line = report_line(report);
  CHECK(has(line,
            "1.00 GiB, 3 names removed, 1 inodes corrected, 2 former clients forgotten, 4 still open, "
            "1 clients gone (instances 7), 1 clients silent, 1 objects damaged; 2.3 s"));
  CHECK_FALSE(has(line, "\n"));
}

TEST_CASE("a dry run says what would be, and names who is gone") {
  PassReport report = some_pass();
  report.gone = {some_client()};
  report.not_seen = {some_client()};
  const std::string text = dry_run_text(report);
  CHECK(has(text, "1,200 items, 20 of them to be left for later; would reclaim 20,001 inodes"));
  CHECK(has(text, "\ngone, would be fenced: instance 7 (pid 4711 on alpha\\x1b)\n"));
  CHECK(has(text, "\nnot seen now, would be fenced if that lasts a minute: instance 7 (pid 4711 on alpha\\x1b)\n"));
}

TEST_CASE("silent clients and damaged objects are warned of, one line each") {
  PassReport report = some_pass();
  CHECK(warnings_of(report).empty());
  report.silent = {some_client()};
  report.damaged = {"Inode.9: attr: wrong checksum"};
  const auto lines = warnings_of(report);
  REQUIRE(lines.size() == 2);
  CHECK(has(lines[0], "instance 7 (pid 4711 on alpha\\x1b) did not answer"));
  CHECK(has(lines[1], "Inode.9: attr: wrong checksum"));
}

TEST_CASE("a pass to which the store refused a remove has failed, and names the first one") {
  PassReport report = some_pass();
  CHECK_FALSE(needs_a_hand(report));
  report.refused = 1'200;
  report.refusal = "remove Data.9.0: permission denied";
  CHECK(needs_a_hand(report));
  CHECK(has(report_line(report), ", 1,200 inodes kept by the store; "));
  const auto lines = warnings_of(report);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] == "remove Data.9.0: permission denied: the data of 1,200 inodes could not be removed");
}

TEST_CASE("a pass that has met damage has failed, and one that has left something for later has not") {
  PassReport report = some_pass();
  report.silent = {some_client()};
  CHECK_FALSE(needs_a_hand(report));
  report.damaged = {"Inode.9"};
  CHECK(needs_a_hand(report));
}

TEST_CASE("a report as JSON holds every field, whatever others have stored") {
  PassReport report = some_pass();
  report.names_removed = 3;
  report.inodes_corrected = 1;
  report.instances_removed = 2;
  report.open_elsewhere = 4;
  report.gone = {some_client()};
  report.silent = {{.id = InstanceId{8}, .host = "\xff", .pid = 1}};
  report.damaged = {"Inode.9: \xff"};
  report.refused = 5;
  const auto json = nlohmann::json::parse(report_as_json(report));
  CHECK(json["items_seen"] == 1200);
  CHECK(json["items_done"] == 1180);
  CHECK(json["items_left"] == 20);
  CHECK(json["inodes_removed"] == 20001);
  CHECK(json["data_objects_removed"] == 256);
  CHECK(json["bytes_freed"] == 1073741824);
  CHECK(json["names_removed"] == 3);
  CHECK(json["inodes_corrected"] == 1);
  CHECK(json["instances_removed"] == 2);
  CHECK(json["open_elsewhere"] == 4);
  CHECK(json["gone"][0]["instance"] == 7);
  CHECK(json["gone"][0]["pid"] == 4711);
  CHECK(json["silent"][0]["instance"] == 8);
  CHECK(json["damaged"].size() == 1);
  CHECK(json["refused"] == 5);
  CHECK(json["seconds"] == 2.345);
}

TEST_CASE("several passes add up to one: what was left and done later counts once") {
  PassReport total = some_pass();
  total.gone = {some_client()};
  total.silent = {some_client()};
  total.damaged = {"Inode.1", "Inode.2"};
  PassReport next;
  next.damaged = {"Inode.2", "Inode.3"};
  next.items_seen = 20;
  next.items_done = 15;
  next.items_left = 5;
  next.inodes_removed = 9;
  next.took = 655ms;
  add_pass(total, next);
  CHECK(total.items_seen == 1200);
  CHECK(total.items_done == 1195);
  CHECK(total.items_left == 5);
  CHECK(total.inodes_removed == 20'010);
  CHECK(total.bytes_freed == 1ULL << 30);
  CHECK(total.gone.size() == 1);
  CHECK(total.silent.empty());
  CHECK(total.damaged == std::vector<std::string>{"Inode.2", "Inode.3", "Inode.1"});  // what led there may be gone
  CHECK(total.took == 3s);
}

TEST_CASE("only a pass that has changed something is worth another one") {
  PassReport idle;
  idle.items_seen = idle.items_left = 3;
  idle.open_elsewhere = 1;
  idle.silent = {some_client()};
  CHECK_FALSE(did_something(idle));
  CHECK(did_something(some_pass()));
  idle.instances_removed = 1;
  CHECK(did_something(idle));
}
