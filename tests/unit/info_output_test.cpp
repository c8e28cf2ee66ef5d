// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "support/catch.h"

using namespace lccfs;

namespace {

VolumeInfo some_volume() {
  VolumeInfo info;
  info.uuid = "01234567-89ab-cdef-0123-456789abcdef";
  info.label = "VM disks";
  info.format_version = 1;
  info.incompat = 0x1000003;
  info.object_size_bytes = 4U << 20;
  info.grace_seconds = 60;
  info.birth_seconds = 1'700'000'000;
  info.numbers_used = 12;
  info.capacity = {.total_bytes = 200ULL << 30, .available_bytes = 1536ULL << 20, .objects = 34};
  info.instances.push_back({.number = 3,
                            .host = "alpha",
                            .version = "0.1.0",
                            .mount_id = "/mnt",
                            .state = "live",
                            .is_live = true,
                            .presence = Presence::watching,
                            .pid = 4711,
                            .since_seconds = 1'700'000'100});
  info.backlog = {.items = 1234, .oldest_seconds = 1'700'000'200, .inodes = 1500, .bytes = 3ULL << 30};
  return info;
}

std::string as_text(const VolumeInfo& info) { return cli::info_as_text(info, 1'700'000'290); }

}  // namespace

TEST_CASE("info shows the volume and each instance in lines for people") {
  const std::string text = as_text(some_volume());
  for (const char* part :
       {"01234567-89ab-cdef-0123-456789abcdef", "VM disks", "2023-11-14 22:13:20 UTC", "4.00 MiB",
        "200 GiB in all, 1.50 GiB free",
        "compat 0x0, ro-compat 0x0, incompat 0x1000003 (space_units, moves, 0x1000000)", "3 live: pid 4711 on alpha",
        "/mnt", "1,234 items, the oldest 90 s old; 1,500 inodes, 3.00 GiB to be reclaimed"}) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("info as JSON holds the exact numbers") {
  const auto json = nlohmann::json::parse(cli::info_as_json(some_volume()));
  CHECK(json["object_size_bytes"] == 4194304);
  CHECK(json["features"]["incompat"] == 0x1000003);
  CHECK(json["features"]["names"] == nlohmann::json{"space_units", "moves"});
  CHECK(json["available_bytes"] == 1610612736);
  CHECK(json["backlog"]["items"] == 1234);
  CHECK(json["backlog"]["oldest"] == 1'700'000'200);
  CHECK(json["backlog"]["inodes"] == 1500);
  CHECK(json["backlog"]["bytes"] == 3221225472);
  CHECK(json["instances"].size() == 1);
  CHECK(json["instances"][0]["pid"] == 4711);
  CHECK(json["instances"][0]["mount_id"] == "/mnt");
}

TEST_CASE("text that others have stored harms neither terminal nor JSON") {
  VolumeInfo info = some_volume();
  info.label = "a\x1b[2Jb";
  info.instances[0].host = "\xff\n";
  CHECK(as_text(info).find("a\\x1b[2Jb") != std::string::npos);
  CHECK(as_text(info).find(" on \\xff\\x0a since ") != std::string::npos);
  info.data_pool = "\x7f\xc2\x9b";
  CHECK(as_text(info).find("\\x7f\\xc2\\x9b\n") != std::string::npos);
  const std::string json = cli::info_as_json(info);
  CHECK(nlohmann::json::parse(json)["label"] == info.label);
  CHECK(std::ranges::all_of(json, [](char c) { return c == '\n' || (c >= ' ' && c < '\x7f'); }));
}

TEST_CASE("of a backlog too long to look at all it is told that there is more") {
  VolumeInfo info;
  info.backlog = {.items = 20'000, .oldest_seconds = {}, .inodes = 10'000, .bytes = 3ULL << 30, .is_more = true};
  CHECK(as_text(info).find("20,000 items; at least 10,000 inodes, 3.00 GiB to be reclaimed\n") != std::string::npos);
  CHECK(nlohmann::json::parse(cli::info_as_json(info))["backlog"]["more"] == true);
}

TEST_CASE("a backlog of which an object does not answer is not known, and all else is told") {
  VolumeInfo info = some_volume();
  info.backlog_not_known = "Session.7: no answer";
  const auto text = cli::info_as_text(info, 1'700'000'500);
  CHECK(text.find("backlog         not known: Session.7: no answer\n") != std::string::npos);
  CHECK(nlohmann::json::parse(cli::info_as_json(info))["backlog"].is_null());
}

TEST_CASE("an empty queue has no oldest item") {
  VolumeInfo info = some_volume();
  info.backlog = {};
  CHECK(as_text(info).find("backlog         0 items; 0 inodes, 0 B to be reclaimed\n") != std::string::npos);
  CHECK(nlohmann::json::parse(cli::info_as_json(info))["backlog"]["oldest"].is_null());
}

TEST_CASE("an item that a faster clock has logged is no second old") {
  VolumeInfo info = some_volume();
  info.backlog.oldest_seconds = 1'700'000'300;
  CHECK(as_text(info).find("the oldest 0 s old") != std::string::npos);
}

TEST_CASE("times that no clock shows are told as they are") {
  auto info = some_volume();
  info.instances.front().since_seconds = INT64_MAX;
  info.backlog.oldest_seconds = INT64_MIN;
  const auto text = as_text(info);
  CHECK(text.find("since 9223372036854775807 s since 1970") != std::string::npos);
  CHECK(text.find("the oldest 9223372038554776098 s old") != std::string::npos);
}

TEST_CASE("a volume without instances is shown as such") {
  VolumeInfo info = some_volume();
  info.instances.clear();
  CHECK(nlohmann::json::parse(cli::info_as_json(info))["instances"].is_array());
  CHECK(as_text(info).find("instances       0\n") != std::string::npos);
}

TEST_CASE("info says of a live client whether it is there") {
  auto info = some_volume();
  info.instances.front().presence.reset();
  CHECK(as_text(info).find("3 live, not known whether it is there: ") != std::string::npos);
  const auto presence = [&] { return nlohmann::json::parse(cli::info_as_json(info))["instances"][0]["presence"]; };
  CHECK(presence() == nullptr);
  info.instances.front().presence = Presence::watching;
  CHECK(as_text(info).find("3 live: ") != std::string::npos);
  CHECK(presence() == "watching");
  info.instances.front().presence = Presence::absent;
  CHECK(as_text(info).find("3 live, not seen now: ") != std::string::npos);
  CHECK(presence() == "absent");
  info.instances.front().presence = Presence::dead;
  CHECK(as_text(info).find("3 live by its record, but dead: ") != std::string::npos);
  CHECK(presence() == "dead");
  info.instances.front().is_live = false;
  info.instances.front().presence.reset();
  CHECK(as_text(info).find("3 live: ") != std::string::npos);
}

TEST_CASE("evict says what the client was, and whether there was anything to do") {
  auto client = some_volume().instances.front();
  client.is_live = false;
  const auto json = [&] { return nlohmann::json::parse(cli::evicted_as_json(client)); };
  CHECK(cli::evicted_as_text(client).starts_with("nothing to do: 3 live: pid 4711 on alpha"));
  CHECK(json()["evicted"] == false);
  client.is_live = true;
  CHECK(cli::evicted_as_text(client).starts_with("evicted 3 live: pid 4711 on alpha"));
  CHECK(json()["evicted"] == true);
  CHECK(json()["client"]["number"] == 3);
  CHECK(nlohmann::json::array({json()["client"]}) == nlohmann::json::parse(cli::clients_as_json({client})));
}
