// SPDX-License-Identifier: LGPL-2.1-or-later
// What lccfs df, du, stat and doctor print, and what doctor makes of a cluster and a host.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/doctor_checks.h"
#include "cli/output.h"
#include "cli/place.h"
#include "support/catch.h"

using namespace lccfs;
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
  CHECK(json::parse(cli::loaded_as_json({.inodes = 1234, .left_out = 2})) == json{{"inodes", 1234}, {"left_out", 2}});
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
  std::string folder = "/tmp/lccfs-place-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string volume = folder + "/odd:/volume";
  std::filesystem::create_directories(volume);
  for (const std::string& source : {volume, volume + ":/a", volume + ":/a:/b"}) {
    cli::set_volume_of_source(source, address);
    CHECK(address.local_directory == volume);
  }
  std::filesystem::remove_all(folder);
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
  const auto root = std::filesystem::temp_directory_path() / ("lccfs-host-" + std::to_string(getpid()));
  const auto put = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  const auto judge = [&](bool is_root) {
    return verdicts([&](Diagnosis& diagnosis) { check_host(diagnosis, root.string(), is_root); });
  };
  auto bare = judge(false);
  CHECK((bare["FUSE"].verdict == Verdict::fail && bare["allow_other"].verdict == Verdict::warn));
  CHECK(judge(true)["allow_other"].verdict == Verdict::ok);
  CHECK(bare["FUSE"].advice.ends_with("modprobe fuse"));
  put("dev/fuse", "");
  std::filesystem::permissions(root / "dev/fuse", std::filesystem::perms::none);
  std::filesystem::permissions(root, std::filesystem::perms::all);
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
  std::filesystem::remove_all(root);
}
