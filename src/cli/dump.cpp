// SPDX-License-Identifier: LGPL-2.1-or-later
#include "survey/dump.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "base/program.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "options/progress.h"
#include "survey/load.h"

namespace lccfs::cli {
namespace {

Result<int> run_dump(const VolumeAddress& address) {
  LCCFS_TRY(const auto volume, open_to_look(address));
  options::ProgressBar bar(system_clock(), options::terminal(isatty(STDOUT_FILENO) == 0));
  survey::DumpOptions how;
  how.on_line = [](const std::string& line) -> Result<> {
    if (std::cout << line) return {};
    return failure(ErrorCode::io, "cannot write the dump");
  };
  how.on_progress = [&bar](std::uint64_t inodes) { bar.show({inodes, 0, "inodes"}); };
  how.on_damage = [&bar](const std::string& what) {
    bar.clear();
    print_error("lccfs dump", what);
  };
  const auto left_out = survey::dump_volume(*volume.store, volume.super, system_clock(), how);
  bar.clear();
  if (!left_out) return std::unexpected(left_out.error());
  if (*left_out == 0) return {};
  return failure(ErrorCode::corrupt,
                 count_text(*left_out) + " damaged parts are not in the dump; lccfs-fsck tells more");
}

Result<int> run_load(const OnVolume& given) {
  struct stat input = {};
  if (fstat(STDIN_FILENO, &input) != 0 || !S_ISREG(input.st_mode))
    return failure(ErrorCode::invalid,
                   "standard input is no file: the dump is read twice, so it cannot come by a pipe");
  std::ifstream dump("/dev/stdin");
  if (!dump) return failure(ErrorCode::io, "cannot read standard input");
  LCCFS_TRY(const auto store, open_store(given.address, {.step_timeout = step_timeout}));
  options::ProgressBar bar(system_clock(), options::terminal(true));
  survey::LoadOptions how;
  how.on_progress = [&bar](std::uint64_t done, std::uint64_t expected) { bar.show({done, expected, "lines"}); };
  const auto loaded = survey::load_volume(*store, dump, how);
  bar.clear();
  if (!loaded) return std::unexpected(loaded.error());
  std::cout << (given.json ? loaded_as_json(*loaded) : loaded_as_text(*loaded, given.address.describe()));
  if (loaded->left_out != 0)
    print_error("lccfs load", count_text(loaded->left_out) + " damaged parts were not in the dump");
  if (loaded->names_left_out != 0)
    print_error("lccfs load", count_text(loaded->names_left_out) +
                                  " names were left out: by the dump, their files do not point back to them");
  if (loaded->without_name != 0)
    print_error("lccfs load", count_text(loaded->without_name) +
                                  " inodes have no name: lccfs-fsck --repair puts those with content into /lost+found, "
                                  "and removes the others");
  return {};
}

}  // namespace

void add_dump(options::CommandLine& program) {
  auto& line = program.add_command({.name = "dump",
                                    .usage = "VOLUME > FILE",
                                    .summary = "Writes the metadata of a volume as lines of JSON. Changes nothing.",
                                    .footer = R"(Examples:
  lccfs dump -c /etc/ceph/ceph.conf -p vms | zstd > vms.dump.zst
  lccfs dump --local /srv/volume > volume.dump

It has what is stored: all inodes with a path, their attributes, names, ACLs and allocation maps, and no bytes
of files. Nobody should change the volume meanwhile: otherwise not all of it is of one moment, and a volume
loaded from it may need lccfs-fsck --repair.)"});
  options::add_address(line, line.runs(run_dump));
}

void add_load(options::CommandLine& program) {
  auto& line = program.add_command({.name = "load",
                                    .usage = "VOLUME [--json] < FILE",
                                    .summary = "Puts the metadata of a dump into an empty volume.",
                                    .footer = R"(Examples:
  lccfs mkfs -c /etc/ceph/ceph.conf -p restored
  lccfs load -c /etc/ceph/ceph.conf -p restored < vms.dump

Inodes keep their numbers. So where data objects of the dumped volume are in the new one's pool and namespace,
the files have their bytes again; the others read as zeros (lccfs mkfs --for-load makes a volume where data
objects are; run lccfs-fsck --repair before anything mounts it). All of the dump is checked before anything
is changed: it is read twice, so it has to be a file, and no pipe. A load that was cut short leaves a volume
that no program takes: run it again, with the same dump.)"});
  auto& given = line.runs(run_load);
  options::add_address(line, given.address);
  add_json(line, given.json);
}

}  // namespace lccfs::cli
