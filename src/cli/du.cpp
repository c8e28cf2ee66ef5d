// SPDX-License-Identifier: LGPL-2.1-or-later
#include <iostream>

#include "base/program.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "options/progress.h"

namespace lccfs::cli {
namespace {

struct Du : OnPlace {
  bool summary = false, human = false;
};

Result<int> run_du(const Du& given) {
  LCCFS_TRY(const Place place, resolve_place(given.place));
  LCCFS_TRY(const auto volume, open_to_look(place.address));
  LCCFS_TRY(const Ino start, inode_of(volume, place));
  options::ProgressBar bar(system_clock(), options::terminal(!given.json));
  std::uint64_t damaged = 0;
  survey::UsageOptions how;
  how.on_progress = [&bar](std::uint64_t inodes) { bar.show({inodes, 0, "inodes"}); };
  how.on_damage = [&](const std::string& what) {
    bar.clear();
    print_error("lccfs du", what);
    ++damaged;
  };
  const auto directories = survey::measure_usage(*volume.store, volume.super, start, how);
  bar.clear();
  if (!directories) return std::unexpected(directories.error());
  const DuOutput output{place.path.empty() ? "/" : place.path, given.summary, given.human};
  std::cout << (given.json ? du_as_json(*directories, output) : du_as_text(*directories, output));
  if (damaged == 0) return {};
  return failure(ErrorCode::corrupt, count_text(damaged) + " damaged parts are not counted; lccfs-fsck tells more");
}

}  // namespace

void add_du(options::CommandLine& program) {
  auto& line = program.add_command({.name = "du",
                                    .usage = "[VOLUME] PATH [OPTION]...",
                                    .summary = "Shows what a directory occupies, from what is stored of it.",
                                    .footer = R"(Examples:
  lccfs du -sh /mnt/vms/instances
  lccfs du -p vms -n nova /instances/_base
  lccfs du --local /srv/volume / --json

With a VOLUME the path is one within it, and nothing needs to be mounted. Without one it is on a mount; the
cluster is then that of -c and --id. A file with several names counts once. What a client has written and
not stored yet, a few seconds' worth, is not counted: it is not asked.)"});
  auto& given = line.runs(run_du);
  add_place(line, given.place, "PATH", "a directory or file");
  line.group("Output");
  line.flag("-s,--summarize", given.summary, "one line for all of it");
  line.flag("-h,--human-readable", given.human, "sizes with units, not in KiB");
  line.flag("--json", given.json, "as JSON, for programs; sizes in bytes");
}

}  // namespace lccfs::cli
