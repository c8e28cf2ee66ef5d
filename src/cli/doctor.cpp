// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/stat.h>
#include <unistd.h>

#include <iostream>
#include <vector>

#include "cli/commands.h"
#include "cli/doctor_checks.h"
#include "cli/own_mounts.h"
#include "store/monitors.h"

namespace lccfs::cli {
namespace {

double now_seconds() {
  constexpr double nanoseconds_per_second = 1e9;
  const auto now = system_clock().wall_time();
  return static_cast<double>(now.seconds) + now.nanoseconds / nanoseconds_per_second;
}

void check_cluster(Diagnosis& diagnosis, ObjectStore& store, const VolumeAddress& address) {
  constexpr const char* about_monitors = "the key must permit: mon 'allow r'";
  const auto super = objects::read_super(objects::reader_of(store));
  const auto pools = ask_monitors(address, R"({"prefix": "osd dump", "format": "json"})");
  if (!pools) return diagnosis.fail("pools", pools.error().context, about_monitors);
  check_pools(diagnosis, *pools, address.pool, super ? super->record.data_pool : "");
  const auto asked = now_seconds();
  const auto report = ask_monitors(address, R"({"prefix": "report", "format": "json"})");
  if (!report) return diagnosis.warn("clock", report.error().context, about_monitors);
  check_clock(diagnosis, *report, asked, now_seconds());
}

/// A pool may be given by its number, a directory by another path.
bool is_same_volume(const VolumeAddress& one, const VolumeAddress& other) {
  const auto first = open_to_look(one), second = open_to_look(other);
  return first && second && first->super.uuid == second->super.uuid;
}

/// The directory where the volume is mounted, of a path on that mount.
Result<std::string> mountpoint_of(PatientCalls& calls, const std::string& path, const VolumeAddress& address) {
  Place given;
  given.address.conf_file = address.conf_file;
  given.address.client_id = address.client_id;
  given.path = path;
  LCCFS_TRY(const Place place, calls.run([given]() -> Result<Place> {
    Place found = given;
    LCCFS_CHECK(find_mounted(found));
    return found;
  }));
  if (!is_same_volume(place.address, address)) {
    return failure(ErrorCode::invalid, path + " is on a mount of another volume: " + place.address.describe());
  }
  if (*place.ino != root_ino) return failure(ErrorCode::invalid, path + " is not where the volume's root is mounted");
  return path;
}

/// Of one of its own and that one, or of two of its own.
void try_mounts(Diagnosis& diagnosis, const VolumeAddress& address, const std::string& peer) {
  constexpr const char* about_mounting = "mount it by hand to learn more: lccfs-fuse -f";
  const auto folder = PrivateFolder::make();
  if (!folder) return diagnosis.fail("mount", folder.error().context, "set TMPDIR to a folder that can be written");
  std::vector<OwnMount> own;
  PatientCalls calls([&own] {
    for (auto& mount : own) mount.end_at_once();
  });
  for (const char* name : peer.empty() ? std::vector{"one", "two"} : std::vector{"one"}) {
    auto mount = OwnMount::make(address, folder->path(), name);
    if (!mount) return diagnosis.fail("mount", mount.error().context, about_mounting);
    own.push_back(std::move(*mount));
  }
  if (!peer.empty()) {
    const auto mountpoint = mountpoint_of(calls, peer, address);
    if (!mountpoint) {
      return diagnosis.fail("peer", mountpoint.error().context,
                            calls.has_given_up() ? "see its log" : "give --peer the mount point");
    }
  }
  diagnosis.ok("mount", peer.empty() ? "twice, in a folder of its own" : "one of its own, and " + peer);
  check_mounts(diagnosis, calls, own.front().path(), peer.empty() ? own.back().path() : peer);
}

struct Doctor : OnVolume {
  std::string peer;
};

Result<int> run_doctor(const Doctor& given) {
  const bool colours = isatty(STDOUT_FILENO) != 0;
  Diagnosis diagnosis(std::cout, given.json ? Diagnosis::Look::none
                                 : colours  ? Diagnosis::Look::colours
                                            : Diagnosis::Look::plain);
  const Interruption interruption;
  check_host(diagnosis, "", geteuid() == 0);
  const auto store = open_store(given.address, {.step_timeout = step_timeout});
  if (store) {
    diagnosis.ok("store", "reached");
    check_store(diagnosis, **store, system_clock());
    if (given.address.local_directory.empty() && !Interruption::is_wanted())
      check_cluster(diagnosis, **store, given.address);
    if (!Interruption::is_wanted()) try_mounts(diagnosis, given.address, given.peer);
  } else {
    diagnosis.fail("store", store.error().context, "nothing else was tried");
  }
  std::cout << diagnosis.end();
  if (Interruption::is_wanted()) return failure(ErrorCode::interrupted, "interrupted: not all was tried");
  return diagnosis.exit_status();
}

}  // namespace

void add_doctor(options::CommandLine& program) {
  auto& line = program.add_command({.name = "doctor",
                                    .usage = "VOLUME [--peer DIRECTORY] [--json]",
                                    .summary = "Tries out whether a volume and this host can carry VMs.",
                                    .footer = R"(Examples:
  lccfs doctor -c /etc/ceph/ceph.conf -p vms --id nova
  lccfs doctor -p vms -n nova --peer /mnt/vms
  lccfs doctor --local /srv/volume --json

A line for each check: ok, warn or FAIL, with what to change. It mounts the volume twice (with --peer once) in
a folder of its own, works in a directory .lccfs-doctor-* of the volume, and removes all that again, also when
it is interrupted. Nothing else in the volume is changed. Where a mount does not answer for 150 seconds, that
check FAILs and is the last one, and the directory is left in the volume.

Exit status: 0 all is right, 1 something FAILs, 2 wrong usage, 3 there are warnings.)"});
  auto& given = line.runs(run_doctor);
  options::add_address(line, given.address);
  line.group("What to try");
  line.option("--peer", "DIRECTORY", options::path(given.peer),
              "where the volume is mounted already: the second mount");
  add_json(line, given.json);
}

}  // namespace lccfs::cli
