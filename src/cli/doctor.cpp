// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/stat.h>
#include <unistd.h>

#include <iostream>

#include "cli/commands.h"
#include "cli/doctor_checks.h"
#include "cli/own_mounts.h"
#include "store/monitors.h"

namespace lccfs::cli {

Doctor::Doctor(options::CommandLine& program) {
  auto& line = program.add_command({.name = "doctor",
                                    .usage = "VOLUME [--peer DIRECTORY] [--json]",
                                    .summary = "Tries out whether a volume and this host can carry VMs.",
                                    .footer = R"(Examples:
  lccfs doctor -c /etc/ceph/ceph.conf -p vms --id nova
  lccfs doctor -p vms -n nova --peer /mnt/vms
  lccfs doctor --local /srv/volume --json

A line for each check: ok, warn or FAIL, with what to change. It mounts the volume twice (with --peer once) in
a folder of its own, works in a directory .lccfs-doctor-* of the volume, and removes all that again, also when
it is interrupted. Nothing else in the volume is changed.

Exit status: 0 all is right, 1 something FAILs, 2 wrong usage, 3 there are warnings.)"});
  options::add_address(line, address_);
  line.group("What to try");
  line.option("--peer", "DIRECTORY", options::path(peer_), "where the volume is mounted already: the second mount");
  line.group("Output");
  line.flag("--json", json_, "as JSON, for programs");
}

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
Result<std::string> mountpoint_of(const std::string& path, const VolumeAddress& address) {
  Place place;
  place.address.conf_file = address.conf_file;
  place.address.client_id = address.client_id;
  place.path = path;
  LCCFS_CHECK(find_mounted(place));
  if (!is_same_volume(place.address, address)) {
    return failure(ErrorCode::invalid, path + " is on a mount of another volume: " + place.address.describe());
  }
  if (*place.ino != root_ino) return failure(ErrorCode::invalid, path + " is not where the volume's root is mounted");
  return path;
}

/// Whether what follows has two mounts to try.
void try_mounts(Diagnosis& diagnosis, const VolumeAddress& address, const std::string& peer) {
  constexpr const char* about_mounting = "mount it by hand to learn more: lccfs-fuse -f";
  const auto folder = PrivateFolder::make();
  if (!folder) return diagnosis.fail("mount", folder.error().context, "set TMPDIR to a folder that can be written");
  const auto first = OwnMount::make(address, folder->path(), "one");
  if (!first) return diagnosis.fail("mount", first.error().context, about_mounting);
  if (!peer.empty()) {
    const auto mountpoint = mountpoint_of(peer, address);
    if (!mountpoint) return diagnosis.fail("peer", mountpoint.error().context, "give --peer the mount point");
    diagnosis.ok("mount", "one of its own, and " + peer);
    return check_mounts(diagnosis, first->path(), peer);
  }
  const auto second = OwnMount::make(address, folder->path(), "two");
  if (!second) return diagnosis.fail("mount", second.error().context, about_mounting);
  diagnosis.ok("mount", "twice, in a folder of its own");
  check_mounts(diagnosis, first->path(), second->path());
}

}  // namespace

Result<int> Doctor::run() const {
  const bool colours = isatty(STDOUT_FILENO) != 0;
  Diagnosis diagnosis(std::cout, json_     ? Diagnosis::Look::none
                                 : colours ? Diagnosis::Look::colours
                                           : Diagnosis::Look::plain);
  const Interruption interruption;
  check_host(diagnosis, "", geteuid() == 0);
  const auto store = open_store(address_, {.step_timeout = step_timeout});
  if (store) {
    diagnosis.ok("store", "reached");
    check_store(diagnosis, **store, system_clock());
    if (address_.local_directory.empty() && !Interruption::is_wanted()) check_cluster(diagnosis, **store, address_);
    if (!Interruption::is_wanted()) try_mounts(diagnosis, address_, peer_);
  } else {
    diagnosis.fail("store", store.error().context, "nothing else was tried");
  }
  std::cout << diagnosis.end();
  if (Interruption::is_wanted()) return failure(ErrorCode::interrupted, "interrupted: not all was tried");
  return diagnosis.exit_status();
}

}  // namespace lccfs::cli
