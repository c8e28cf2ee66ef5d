// SPDX-License-Identifier: LGPL-2.1-or-later
// What lccfs df, du, stat and doctor print, and what doctor makes of a cluster and a host.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/doctor_checks.h"
#include "cli/output.h"
#include "cli/place.h"
#include "support/catch.h"
#include "support/fake_clock.h"
#include "support/temporary_folder.h"

using namespace lccfs;
using namespace std::chrono_literals;
using cli::Check;
using cli::Diagnosis;

namespace {

const std::vector<survey::DirectoryUsage> some_usage{
    {0, "", {5000, 6000, 4}}, {0, "a", {1025, 2, 3}}, {1, "b\n\xff", {1024, 1, 1}}, {0, "c", {0, 0, 1}}};

/// By name.
std::map<std::string, Check> verdicts(const std::function<void(Diagnosis&)>& checks) {
  std::ostringstream out;
  Diagnosis diagnosis(out, Diagnosis::Look::plain);
  checks(diagnosis);
  std::map<std::string, Check> found;
  for (const auto& check : diagnosis.checks()) {
    CHECK((check.verdict == Check::Verdict::ok) == check.advice.empty());
    found[check.name] = check;
  }
  return found;
}

/// access(2) asks for the real user, and root may all.
auto as_nobody(const auto& function) {
  constexpr uid_t nobody = 65534;
  const uid_t real = getuid();
  const bool is_root = setresuid(nobody, geteuid(), geteuid()) == 0;
  const auto result = function();
  if (is_root) REQUIRE(setresuid(real, geteuid(), geteuid()) == 0);
  return result;
}

Check::Verdict clock_verdict(const std::string& timestamp, double asked, double answered) {
  const auto report = R"({"version": "17", "timestamp": ")" + timestamp + R"(", "more": 1})";
  return verdicts([&](Diagnosis& diagnosis) { check_clock(diagnosis, report, asked, answered); })["clock"].verdict;
}

using Verdict = Check::Verdict;

}  // namespace

TEST_CASE("df has the numbers of statfs, and what is used") {
  const Capacity capacity{.total_bytes = 4ULL << 30, .available_bytes = 3ULL << 30, .objects = 1234};
  CHECK(cli::df_as_text(capacity, "-p vms") ==
        "      size        used   available  use%       objects  volume\n"
        "  4.00 GiB    1.00 GiB    3.00 GiB   25%         1,234  -p vms\n");
  const auto json = nlohmann::json::parse(cli::df_as_json(capacity));
  CHECK((json["total_bytes"] == 4ULL << 30 && json["used_bytes"] == 1ULL << 30 && json["objects"] == 1234));
  CHECK(cli::df_as_text({}, "x").contains("  0%"));
}

TEST_CASE("du has a line for each directory after those below it, and odd names in one line") {
  CHECK(cli::du_as_text(some_usage, {.path = "/x"}) == "1\t/x/a/b\\x0a\\xff\n2\t/x/a\n0\t/x/c\n5\t/x\n");
  CHECK(cli::du_as_text(some_usage, {.path = "/", .summary = true, .human = true}) == "4.88 KiB\t/\n");
  const auto json = nlohmann::json::parse(cli::du_as_json(some_usage, {.path = "/"}));
  CHECK(
      (json["bytes"] == 5000 && json["directories"].size() == 4 && json["directories"][0]["path"] == "/a/b\\x0a\\xff"));
}

TEST_CASE("stat tells a path that is not known from none") {
  survey::InodeFacts facts;
  facts.names = {
      {Ino{9}, "disk", "/vm/disk", ""}, {Ino{10}, "lost", "", ""}, {Ino{11}, "far", "", "Inode.1: silent\n"}};
  const auto text = cli::stat_as_text(facts, 4096);
  CHECK(text.contains("/vm/disk, in Inode.9\n"));
  CHECK(text.contains("\"lost\", of no path, in Inode.10\n"));
  CHECK(text.contains("\"far\", in Inode.11; its path is not known: Inode.1: silent\\x0a\n"));
  const auto names = nlohmann::json::parse(cli::stat_as_json(facts, 4096))["names"];
  CHECK((names[0]["path"] == "/vm/disk" && names[0]["path_not_known"] == nullptr));
  CHECK((names[1]["path"] == nullptr && names[1]["path_not_known"] == nullptr));
  CHECK((names[2]["path"] == nullptr && names[2]["path_not_known"] == "Inode.1: silent\\x0a"));
}

TEST_CASE("stat tells what nobody was asked from what nobody has open") {
  survey::InodeFacts facts;
  const auto open_at = [&facts] { return nlohmann::json::parse(cli::stat_as_json(facts, 4096))["open_at"]; };
  CHECK(open_at().is_null());
  facts.open_at.emplace();
  CHECK(open_at() == nlohmann::json::array());
  facts.open_at->push_back({InstanceId{7}, "alpha", "/mnt", false});
  CHECK(open_at()[0]["answered"] == false);
  CHECK(cli::stat_as_text(facts, 4096).ends_with("client 7 on alpha, /mnt did not answer\n"));
}

TEST_CASE("what was made, upgraded or loaded is told in a line, and as JSON") {
  using nlohmann::json;
  CHECK(cli::made_as_text("-p \x1b") == "made a volume at -p \\x1b\n");
  const auto made = json::parse(cli::made_as_json("0123", {.label = "VM disks", .data_pool = "fast"}));
  CHECK((made["uuid"] == "0123" && made["label"] == "VM disks" && made["data_pool"] == "fast"));
  CHECK((made["object_size_bytes"] == 4194304 && made["grace_seconds"] == 60 && made["to_be_loaded"] == false));

  const Upgraded upgraded{{"acls", "locks"}, {}};
  CHECK(cli::upgrade_as_text(upgraded, false, "-p vms") == "upgraded the volume at -p vms: acls, locks\n");
  CHECK(cli::upgrade_as_text(upgraded, true, "-p vms") == "would upgrade the volume at -p vms: acls, locks\n");
  CHECK(cli::upgrade_as_text({}, false, "-p vms").starts_with("nothing to do: the volume at -p vms has all features"));
  const auto none = json::array();
  CHECK(json::parse(cli::upgrade_as_json(upgraded, false)) ==
        json{{"upgraded", true}, {"features", {"acls", "locks"}}, {"local_locks", none}});
  CHECK(json::parse(cli::upgrade_as_json(upgraded, true)) ==
        json{{"upgraded", false}, {"features", {"acls", "locks"}}, {"local_locks", none}});
  CHECK(json::parse(cli::upgrade_as_json({}, false)) ==
        json{{"upgraded", false}, {"features", none}, {"local_locks", none}});

  CHECK(cli::loaded_as_text({.inodes = 1234}, "-p vms") == "loaded 1,234 inodes into the volume at -p vms\n");
  CHECK(cli::loaded_as_text({.inodes = 1, .data_objects = 5678}, "x")
            .ends_with("\nthere are 5,678 data objects: run lccfs-fsck --repair before anything mounts the volume\n"));
  CHECK(json::parse(cli::loaded_as_json(
            {.inodes = 1234, .left_out = 2, .names_left_out = 4, .without_name = 5, .data_objects = 3})) ==
        json{{"inodes", 1234}, {"left_out", 2}, {"names_left_out", 4}, {"without_name", 5}, {"data_objects", 3}});
}

TEST_CASE("mounts that keep their locks to themselves are told in the upgrade's line, with what to do") {
  Upgraded upgraded{{"locks"}, {}};
  const auto add_mount = [&upgraded](std::uint64_t number, const char* host, const char* mount_id, std::uint64_t pid) {
    auto& mount = upgraded.local_locks.emplace_back();
    mount.number = number;
    mount.host = host;
    mount.mount_id = mount_id;
    mount.pid = pid;
  };
  add_mount(7, "alpha", "/mnt/a\n", 4711);
  add_mount(8, "beta", "/mnt", 12);
  const std::string told =
      "upgraded the volume at -p vms: locks; then unmount and mount these again, they keep their locks to themselves: "
      "/mnt/a\\x0a on alpha (client 7, pid 4711), /mnt on beta (client 8, pid 12)\n";
  CHECK(cli::upgrade_as_text(upgraded, false, "-p vms") == told);
  const auto json = nlohmann::json::parse(cli::upgrade_as_json(upgraded, false));
  CHECK((json["local_locks"].size() == 2 && json["local_locks"][1]["number"] == 8));
}

TEST_CASE("a mount's source is the volume's address") {
  VolumeAddress address;
  cli::set_volume_of_source("vms/nova/x", address);
  CHECK((address.pool == "vms" && address.pool_namespace == "nova/x" && address.local_directory.empty()));
  cli::set_volume_of_source("vms", address);
  CHECK((address.pool == "vms" && address.pool_namespace.empty()));
  cli::set_volume_of_source("/srv/volume", address);
  CHECK(address.local_directory == "/srv/volume");
}

TEST_CASE("a mounted part of a volume does not belong to its address") {
  VolumeAddress address;
  cli::set_volume_of_source("vms:/guests/one", address);
  CHECK((address.pool == "vms" && address.pool_namespace.empty()));
  cli::set_volume_of_source("vms/nova:/a:/b", address);
  CHECK((address.pool == "vms" && address.pool_namespace == "nova"));
  const test::TemporaryFolder folder;
  const std::string volume = folder / "odd:/volume";
  std::filesystem::create_directories(volume);
  for (const std::string& source : {volume, volume + ":/a", volume + ":/a:/b"}) {
    cli::set_volume_of_source(source, address);
    CHECK(address.local_directory == volume);
  }
  cli::set_volume_of_source("/is/gone:/a:/b", address);
  CHECK(address.local_directory == "/is/gone");
}

TEST_CASE("the doctor's lines say what to change, and the status is that of the worst") {
  std::ostringstream out;
  Diagnosis diagnosis(out, Diagnosis::Look::plain);
  CHECK(diagnosis.exit_status() == 0);
  diagnosis.ok("one", "fine");
  CHECK(diagnosis.exit_status() == 0);
  diagnosis.warn("two", "so so\n", "change it");
  CHECK(diagnosis.exit_status() == 3);
  diagnosis.run("three", "run it", [] { return Result<std::string>(failure(ErrorCode::io, "broken")); });
  CHECK(diagnosis.exit_status() == 1);
  CHECK(out.str() == "ok    one: fine\nwarn  two: so so\\x0a; change it\nFAIL  three: broken; run it\n");
  CHECK(diagnosis.end() == "1 ok, 1 warnings, 1 failures\n");
  std::ostringstream nothing;
  Diagnosis json(nothing, Diagnosis::Look::none);
  json.warn("two", "seen", "advice");
  CHECK(nothing.str().empty());
  CHECK(nlohmann::json::parse(json.end())["checks"][0]["verdict"] == "warn");
}

TEST_CASE("a call that has an answer gives it, and one that has none is given up with all that would come after it") {
  test::FakeClock clock;
  std::promise<void> answered;
  int given_up = 0;
  cli::PatientCalls calls(
      [&] {
        ++given_up;
        answered.set_value();
      },
      clock);
  CHECK(*calls.run([] { return Result<int>(7); }) == 7);
  CHECK(calls.run([] { return Result<int>(failure(ErrorCode::io, "broken")); }).error().context == "broken");
  CHECK_FALSE(calls.has_given_up());
  const auto late = calls.run([&clock, answer = answered.get_future().share()]() -> Result<> {
    clock.advance(150s);
    answer.wait();
    return {};
  });
  CHECK((!late && late.error().code == ErrorCode::timed_out && late.error().context == "no answer within 150 s"));
  CHECK_FALSE(calls.run([] { return Result<int>(7); }));
  CHECK((calls.has_given_up() && given_up == 1));
}

TEST_CASE("a client is seen if it was looked for, and there") {
  const auto judge = [](std::vector<InstanceInfo> clients) {
    return verdicts([&](Diagnosis& diagnosis) { check_clients(diagnosis, clients, 1000); });
  };
  const auto client = [](std::optional<Presence> presence) {
    InstanceInfo info;
    info.number = 7;
    info.host = "alpha";
    info.is_live = true;
    info.presence = presence;
    return info;
  };
  InstanceInfo ended;
  ended.since_seconds = 1003;
  auto found = judge({client(Presence::watching), ended});
  CHECK((found.size() == 2 && found["clients"].seen == "2 known, each that should live is seen"));
  CHECK(found["clocks of clients"].verdict == Verdict::warn);
  found = judge({client(Presence::watching), client(std::nullopt)});
  CHECK((found.size() == 1 && found["presence of clients"].verdict == Verdict::warn));
  CHECK(found["presence of clients"].seen == "not known: 7 on alpha");
  found = judge({client(Presence::absent), client(std::nullopt)});
  CHECK((found.size() == 2 && found["clients"].seen == "not seen now: 7 on alpha"));
}

TEST_CASE("pools are judged by what the monitors say of them") {
  const auto judge = [](const std::string& dump) {
    return verdicts([&](Diagnosis& diagnosis) { check_pools(diagnosis, dump, "vms", "bytes"); });
  };
  const auto good = judge(R"({"pools": [
    {"pool": 1, "pool_name": "other", "type": 3},
    {"pool": 2, "pool_name": "vms", "type": 1, "size": 3, "min_size": 2, "flags_names": "hashpspool", "pg_num": 32,
     "pg_autoscale_mode": "on", "application_metadata": {"lccfs": {}}},
    {"pool": 3, "pool_name": "bytes", "type": 3, "size": 6, "min_size": 5, "flags_names": "hashpspool,ec_overwrites",
     "pg_num": 32, "pg_autoscale_mode": "on", "application_metadata": {"lccfs": {}}}]})");
  CHECK(good.size() == 10);
  for (const auto& [name, check] : good) CHECK((name.starts_with("pool ") && check.verdict == Verdict::ok));
  auto bad = judge(R"({"pools": [
    {"pool": 2, "pool_name": "vms", "type": 3, "size": 1, "min_size": 1, "flags_names": "full", "pg_autoscale_mode": "off"},
    {"pool": 3, "pool_name": "bytes", "type": 3, "flags_names": "nearfull"}]})");
  CHECK(bad["pool vms, kind"].verdict == Verdict::fail);
  CHECK(bad["pool vms, room"].verdict == Verdict::fail);
  CHECK(bad["pool vms, application"].advice == "run: ceph osd pool application enable vms lccfs");
  CHECK(bad["pool vms, placement"].verdict == Verdict::warn);
  CHECK(bad["pool bytes, kind"].advice.contains("allow_ec_overwrites"));
  CHECK(bad["pool bytes, room"].verdict == Verdict::warn);
  auto thin = judge(R"({"pools": [{"pool": 2, "pool_name": "vms", "type": 1, "size": 1, "min_size": 1}]})");
  CHECK(thin["pool vms, copies"].verdict == Verdict::warn);
  for (const char* odd :
       {"", "[]", "{}", "{\"pools\": 7}", "{\"pools\": [7, {}]}", "{\"pools\": [{\"pool_name\": 3}]}"})
    CHECK(judge(odd).contains("pools"));
}

TEST_CASE("a clock is right if the monitors' time lies between two looks at ours") {
  CHECK(clock_verdict("2023-11-14T22:13:20.500000+0000", 1'700'000'000, 1'700'000'001) == Verdict::ok);
  CHECK(clock_verdict("2023-11-15T00:13:20.500000+0200", 1'700'000'000, 1'700'000'001) == Verdict::ok);
  CHECK(clock_verdict("2023-11-14T22:13:20.000000+0000", 1'700'000'010, 1'700'000'011) == Verdict::warn);
  CHECK(clock_verdict("2023-11-14T23:13:20.000000+0000", 1'700'000'000, 1'700'000'001) == Verdict::fail);
  CHECK(clock_verdict("yesterday", 1'700'000'000, 1'700'000'001) == Verdict::warn);
}

TEST_CASE("a host is judged by its files") {
  const test::TemporaryFolder root;
  const auto put = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  const auto judge = [&](bool is_root) {
    return verdicts([&](Diagnosis& diagnosis) { check_host(diagnosis, root.path(), is_root); });
  };
  auto bare = judge(false);
  CHECK((bare["FUSE"].verdict == Verdict::fail && bare["allow_other"].verdict == Verdict::warn));
  CHECK(judge(true)["allow_other"].verdict == Verdict::ok);
  CHECK(bare["FUSE"].advice.ends_with("modprobe fuse"));
  put("dev/fuse", "");
  std::filesystem::permissions(root / "dev/fuse", std::filesystem::perms::none);
  std::filesystem::permissions(root.path(), std::filesystem::perms::all);
  CHECK(as_nobody([&] { return judge(false); })["FUSE"].advice.ends_with("chmod 666 /dev/fuse"));
  std::filesystem::permissions(root / "dev/fuse", std::filesystem::perms::all);
  put("etc/fuse.conf", "# comment\n user_allow_other\n");
  put("etc/libvirt/qemu.conf", "#shared_filesystems = []\n");
  put("etc/passwd", "root:x:0:0::/:/bin/sh\nlibvirt-qemu:x:64055:109::/:/bin/false\n");
  put("sys/fs/selinux/enforce", "1");
  auto found = judge(false);
  CHECK((found["FUSE"].verdict == Verdict::ok && found["allow_other"].verdict == Verdict::ok));
  CHECK(found["libvirt"].verdict == Verdict::warn);
  CHECK(found["hypervisor's user"].seen.starts_with("libvirt-qemu has uid 64055 and gid 109"));
  CHECK(found["SELinux"].advice == "run: setsebool -P virt_use_fusefs on");
  put("etc/libvirt/qemu.conf", "shared_filesystems = [ \"/mnt/vms\" ]\n");
  put("sys/fs/selinux/booleans/virt_use_fusefs", "1 1");
  found = judge(false);
  CHECK((found["libvirt"].verdict == Verdict::ok && found["SELinux"].verdict == Verdict::ok));
}
